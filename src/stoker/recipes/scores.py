"""Measure how good predictions are, with intervals, which of several is better, and which columns matter to a model.

Intervals are 95 % bootstrap intervals over the test rows. All contenders are measured on the same resamples, so the
interval of a difference is that of the pairs. It is much narrower than the intervals of the two scores suggest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from stoker.data.array_types import Array, Floats
from stoker.recipes.rows import Inputs, Rows

_RESAMPLES = 500
_TINY = 1e-7
_ROUNDING = 1e-20

_HIGHER_IS_BETTER = ("accuracy", "balanced accuracy", "AUC", "R2")
# How many rows and columns the importance of columns is measured on.
_MOST_ROWS, _MOST_COLUMNS = 2_000, 60
# The contents of `result.json`.
Result: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Score:
    """A value and its interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, saved: Mapping[str, float | None]) -> Score:
        """Read the score from JSON, where NaN is null."""
        return cls(**{name: float("nan") if one is None else one for name, one in saved.items()})

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "unknown"
        return f"{format_score(self.value)} ({format_score(self.low)} to {format_score(self.high)})"


@dataclass(frozen=True)
class Contender:
    """A model in the comparison.

    Attributes:
        name: "network", "ensemble", or the name of a baseline.
        scores: the scores by metric.
        behind: how far it is behind the first contender in the first metric; negative if it is ahead.
    """

    name: str
    scores: dict[str, Score]
    behind: Score


def format_score(value: float) -> str:
    """Format a number with at least three significant digits, and no exponent."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def contest(
    labels: Array,
    predictions: Mapping[str, Array],
    *,
    classes: int,
    balanced: bool,
    seed: int = 0,
    resamples: int = _RESAMPLES,
) -> list[Contender]:
    """Measure all predictions on the same rows, and compare the others with the first.

    Args:
        labels: class indices, or numbers if `classes` is 0.
        predictions: the predictions by name: probabilities [rows, classes], or numbers.
        classes: the number of classes.
        balanced: whether the first metric is the mean of the classes' recalls, not the accuracy.
        seed: the seed of the resamples.
        resamples: the number of resamples; with 0, the intervals are unknown.
    """
    metrics = _list_class_metrics(classes, balanced) if classes else _list_number_metrics()
    first = next(iter(metrics))
    sign = 1.0 if first in _HIGHER_IS_BETTER else -1.0
    drawn = {
        name: _resample(metrics, labels, np.asarray(given), _draws(len(labels), seed, resamples))
        for name, given in predictions.items()
    }
    own, own_draws = drawn[next(iter(predictions))]
    found = []
    for name, (values, draws) in drawn.items():
        gap = sign * (own_draws[first] - draws[first])
        behind = Score(sign * (own[first] - values[first]), *_find_interval(gap))
        scores = {metric: Score(values[metric], *_find_interval(draws[metric])) for metric in metrics}
        found.append(Contender(name, scores, behind))
    return found


def name_contender(name: str) -> str:
    """Name a contender within a sentence."""
    return f"the {name}" if name in ("network", "ensemble") else name


def verdict(contenders: list[Contender]) -> str:
    """Name the winner in one sentence; the first contender is the one that is exported."""
    first, *others = contenders
    metric = next(iter(first.scores))
    best = min(others, key=lambda one: one.behind.value)
    own, other = name_contender(first.name), name_contender(best.name)
    ours, theirs = format_score(first.scores[metric].value), format_score(best.scores[metric].value)
    if best.behind.high < 0:
        gain = Score(-best.behind.value, -best.behind.high, -best.behind.low)
        return f"{other} {_conjugate_win(best)}: {metric} {theirs} against {ours}, better by {gain}"
    if best.behind.low > 0:
        rest = ", the best baseline" if first.name == "network" else ", the next best"
        return f"{own} {_conjugate_win(first)}: {metric} {ours} against {theirs} of {other}{rest}"
    return f"{own} and {other} are tied: {metric} {ours} and {theirs}, within the noise"


def name_loss(classes: bool, balanced: bool) -> str:
    """Name the loss by which the exported model is chosen."""
    if not classes:
        return "RMSE"
    return "balanced log loss" if balanced else "log loss"


def _conjugate_win(contender: Contender) -> str:
    return "win" if contender.name.endswith("s") else "wins"


_Metric = Callable[[Array, Array], float]


def _list_number_metrics() -> dict[str, _Metric]:
    def rmse(y: Array, p: Array) -> float:
        return float(np.sqrt(np.mean((y - p) ** 2)))

    def r2(y: Array, p: Array) -> float:
        y = y.astype(float)
        spread = np.mean((y - y.mean()) ** 2)
        # The mean of equal numbers may be off by a rounding error.
        known = spread > _ROUNDING * np.mean(y**2)
        return float(1 - np.mean((y - p) ** 2) / spread) if known else float("nan")

    return {"RMSE": rmse, "MAE": lambda y, p: float(np.mean(np.abs(y - p))), "R2": r2}


def _list_class_metrics(classes: int, balanced: bool) -> dict[str, _Metric]:
    def accuracy(y: Array, p: Array) -> float:
        return float(np.mean(p.argmax(1) == y))

    def recall(y: Array, p: Array) -> float:
        right = np.bincount(y, p.argmax(1) == y, classes)
        there = np.bincount(y, minlength=classes)
        return float(np.mean(right[there > 0] / there[there > 0]))

    def loss(y: Array, p: Array) -> float:
        # Avoid -0.0, which certain and right predictions would give.
        return float(0.0 - np.mean(np.log(np.maximum(p[np.arange(len(y)), y], _TINY))))

    def area(y: Array, p: Array) -> float:
        """Return the area under the ROC curve, from ranks."""
        positive = int(y.sum())
        if positive in (0, len(y)):
            return float("nan")
        _, place, counts = np.unique(p[:, 1], return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
        pairs = positive * (len(y) - positive)
        return float((ranks[y == 1].sum() - positive * (positive + 1) / 2) / pairs)

    both: dict[str, _Metric] = {"accuracy": accuracy, "balanced accuracy": recall}
    if balanced:
        both = dict(reversed(both.items()))
    return {**both, "log loss": loss, **({"AUC": area} if classes == 2 else {})}


def _resample(
    metrics: dict[str, _Metric], labels: Array, given: Array, resamples: Iterator[Array]
) -> tuple[dict[str, float], dict[str, Floats]]:
    values = {name: metric(labels, given) for name, metric in metrics.items()}
    draws: dict[str, list[float]] = {name: [] for name in metrics}
    for rows in resamples:
        for name, metric in metrics.items():
            draws[name].append(metric(labels[rows], given[rows]))
    return values, {name: np.array(found) for name, found in draws.items()}


def _draws(count: int, seed: int, resamples: int) -> Iterator[Array]:
    random = np.random.default_rng(seed)
    for _ in range(resamples):
        yield random.integers(0, count, count)


def _find_interval(draws: Floats) -> tuple[float, float]:
    kept = draws[np.isfinite(draws)]
    if not len(kept):
        return float("nan"), float("nan")
    low, high = np.percentile(kept, [2.5, 97.5])
    return float(low), float(high)


def importance(
    predict: Callable[[Inputs], Array], rows: Rows, *, classes: int, balanced: bool, seed: int
) -> list[tuple[str, float]]:
    """Return how much worse the first metric gets when a column's values are shuffled, by column, the largest first.

    Large data are measured on some of their rows and columns.
    """
    few = Rows({name: column[:_MOST_ROWS] for name, column in rows.inputs.items()}, rows.labels[:_MOST_ROWS])
    random = np.random.default_rng(seed)
    order = random.permutation(len(few))
    names = list(few.inputs)[:_MOST_COLUMNS]
    # Make one call for all columns: the overhead of many small calls would dominate.
    blocks = [few, *(few.shuffle_column(name, order) for name in names)]
    inputs = {name: np.concatenate([block.inputs[name] for block in blocks]) for name in few.inputs}
    answers = np.split(predict(inputs), len(blocks))
    measured = contest(
        few.labels,
        dict(zip(["", *names], answers, strict=True)),
        classes=classes,
        balanced=balanced,
        seed=seed,
        resamples=0,
    )
    found = [(one.name, one.behind.value) for one in measured[1:]]
    return sorted(found, key=lambda pair: -pair[1])
