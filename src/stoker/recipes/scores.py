"""How good predictions are, with intervals, and which of several is better.

Intervals are 95 % bootstrap intervals over the test rows. All contenders are measured on the same resamples, so the
interval of a difference is that of the pairs, which is much narrower than those of the two scores suggest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

_RESAMPLES = 500
_TINY = 1e-7
_ROUNDING = 1e-20

# What larger values of mean.
_HIGHER_IS_BETTER = {"accuracy": True, "balanced accuracy": True, "AUC": True, "R2": True}


@dataclass(frozen=True)
class Score:
    """A value and its interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, saved: Mapping[str, float | None]) -> Score:
        """From JSON, in which what is no number is null."""
        return cls(**{name: float("nan") if one is None else one for name, one in saved.items()})

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "unknown"
        return f"{shown(self.value)} ({shown(self.low)} to {shown(self.high)})"


@dataclass(frozen=True)
class Contender:
    """One of those that were compared.

    Attributes:
        name: "network" is the model; the others are baselines.
        scores: by metric.
        behind: by how much it is behind the network in the first metric; below zero, it is ahead.
    """

    name: str
    scores: dict[str, Score]
    behind: Score

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def shown(value: float) -> str:
    """Three digits that count or more, no exponent."""
    if value != value or abs(value) in (float("inf"),):
        return str(value)
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def contest(
    labels: Any,
    predictions: Mapping[str, Any],
    *,
    classes: int = 0,
    balanced: bool = False,
    seed: int = 0,
    resamples: int = _RESAMPLES,
) -> list[Contender]:
    """Measure everyone on the same rows; the first of `predictions` is the one the others are compared with.

    Args:
        labels: class indices, or numbers if `classes` is 0.
        predictions: by name: probabilities [rows, classes], or numbers.
        classes: how many there are.
        balanced: the first metric is the mean of the classes' recalls, not the accuracy.
        seed: of the resamples.
        resamples: how many; without any, intervals are unknown.
    """
    metrics = _for_classes(classes, balanced) if classes else _for_numbers()
    first = next(iter(metrics))
    sign = 1.0 if _HIGHER_IS_BETTER.get(first) else -1.0
    drawn = {
        name: _resampled(metrics, labels, np.asarray(given), _draws(len(labels), seed, resamples))
        for name, given in predictions.items()
    }
    own, own_draws = drawn[next(iter(predictions))]
    found = []
    for name, (values, draws) in drawn.items():
        gap = sign * (own_draws[first] - draws[first])
        behind = Score(sign * (own[first] - values[first]), *_ends(gap))
        scores = {metric: Score(values[metric], *_ends(draws[metric])) for metric in metrics}
        found.append(Contender(name, scores, behind))
    return found


def verdict(contenders: list[Contender]) -> str:
    """Who wins, in one sentence."""
    network, *others = contenders
    metric = next(iter(network.scores))
    best = min(others, key=lambda one: one.behind.value)
    ours, theirs = shown(network.scores[metric].value), shown(best.scores[metric].value)
    if best.behind.high < 0:
        verb = "win" if best.name.endswith("s") else "wins"
        gain = f"{shown(-best.behind.value)} ({shown(-best.behind.high)} to {shown(-best.behind.low)})"
        return f"{best.name} {verb}: {metric} {theirs} against {ours}, better by {gain}"
    if best.behind.low > 0:
        return f"the network wins: {metric} {ours} against {theirs} of {best.name}, the best baseline"
    return f"the network and {best.name} tie: {metric} {ours} against {theirs}, within the noise"


_Metric = Callable[[Any, Any], float]


def _for_numbers() -> dict[str, _Metric]:
    def rmse(y: Any, p: Any) -> float:
        return float(np.sqrt(np.mean((y - p) ** 2)))

    def r2(y: Any, p: Any) -> float:
        y = y.astype(float)
        spread = np.mean((y - y.mean()) ** 2)
        # Of the same number again and again, the mean may be off by a rounding.
        known = spread > _ROUNDING * np.mean(y**2)
        return float(1 - np.mean((y - p) ** 2) / spread) if known else float("nan")

    return {"RMSE": rmse, "MAE": lambda y, p: float(np.mean(np.abs(y - p))), "R2": r2}


def _for_classes(classes: int, balanced: bool) -> dict[str, _Metric]:
    def accuracy(y: Any, p: Any) -> float:
        return float(np.mean(p.argmax(1) == y))

    def recall(y: Any, p: Any) -> float:
        right = np.bincount(y, p.argmax(1) == y, classes)
        there = np.bincount(y, minlength=classes)
        return float(np.mean(right[there > 0] / there[there > 0]))

    def loss(y: Any, p: Any) -> float:
        # Not -0.0, where all are sure and right.
        return float(0.0 - np.mean(np.log(np.maximum(p[np.arange(len(y)), y], _TINY))))

    def area(y: Any, p: Any) -> float:
        """The area under the ROC curve, from ranks."""
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


def _resampled(
    metrics: dict[str, _Metric], labels: Any, given: Any, resamples: Iterator[Any]
) -> tuple[dict[str, float], dict[str, Any]]:
    values = {name: metric(labels, given) for name, metric in metrics.items()}
    draws: dict[str, list[float]] = {name: [] for name in metrics}
    for rows in resamples:
        for name, metric in metrics.items():
            draws[name].append(metric(labels[rows], given[rows]))
    return values, {name: np.array(found) for name, found in draws.items()}


def _draws(count: int, seed: int, resamples: int) -> Iterator[Any]:
    random = np.random.default_rng(seed)
    for _ in range(resamples):
        yield random.integers(0, count, count)


def _ends(draws: Any) -> tuple[float, float]:
    kept = draws[np.isfinite(draws)]
    if not len(kept):
        return float("nan"), float("nan")
    low, high = np.percentile(kept, [2.5, 97.5])
    return float(low), float(high)
