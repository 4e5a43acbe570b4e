"""Choose the model to export: the one, or the mix of several, with the lowest loss on the validation rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

import numpy as np

from stoker.data.array_types import Array, Floats
from stoker.recipes.rows import balanced_weights

ENSEMBLE = "ensemble"
# Weights in a mix are multiples of a quarter.
_PARTS = 4
# A mix answers more slowly than its best member, so it must be clearly better.
_WORTH = 0.99
_TINY = 1e-7


def choose_weights(
    labels: Array, predictions: Mapping[str, Array], *, classes: int, balanced: bool
) -> dict[str, float]:
    """Return the weights of the models to export, by name; a single model has weight 1.

    Args:
        labels: the labels of the validation rows: class indices, or numbers if `classes` is 0.
        predictions: the predictions for the validation rows, by name: probabilities [rows, classes], or numbers.
        classes: the number of classes.
        balanced: whether all classes count the same.
    """

    def loss(shares: dict[str, float]) -> float:
        mixed = sum(share * np.asarray(predictions[name], float) for name, share in shares.items())
        return mean_loss(labels, np.asarray(mixed), classes=classes, balanced=balanced)

    alone = min(({name: 1.0} for name in predictions), key=loss)
    together = min(_list_mixes(list(predictions)), key=loss, default=alone)
    return together if loss(together) < _WORTH * loss(alone) else alone


def measure_losses(
    labels: Array,
    predictions: Mapping[str, Array],
    shares: Mapping[str, float],
    *,
    classes: int = 0,
    balanced: bool = False,
) -> dict[str, float]:
    """Return what a choice rests on: the losses of all models and, if a mix was chosen, its own, by name.

    For numbers, the losses are roots of mean squared errors, in the units of the labels.
    """
    answers = dict(predictions)
    if len(shares) > 1:
        answers[ENSEMBLE] = np.asarray(
            sum(share * np.asarray(predictions[name], float) for name, share in shares.items())
        )
    losses = {
        name: mean_loss(labels, np.asarray(one), classes=classes, balanced=balanced)
        for name, one in answers.items()
    }
    return losses if classes else {name: math.sqrt(loss) for name, loss in losses.items()}


def mean_loss(labels: Array, answers: Array, *, classes: int, balanced: bool) -> float:
    """Return the mean squared error; for classes the log loss, in which all count the same if `balanced`."""
    weights = _row_weights(labels, classes) if balanced else None
    return float(np.average(_losses(labels, answers, classes), weights=weights))


def _list_mixes(names: list[str]) -> Iterator[dict[str, float]]:
    """Yield all mixes of two models or more."""
    for parts in itertools.product(range(_PARTS + 1), repeat=len(names)):
        shares = {name: part / _PARTS for name, part in zip(names, parts, strict=True) if part}
        if sum(parts) == _PARTS and len(shares) > 1:
            yield shares


def _row_weights(labels: Array, classes: int) -> Floats:
    by_class = balanced_weights(labels, classes)
    return np.array([by_class[int(one)] for one in labels])


def _losses(labels: Array, answers: Array, classes: int) -> Floats:
    if not classes:
        squares: Floats = (labels - answers) ** 2
        return squares
    sure: Floats = -np.log(np.maximum(answers[np.arange(len(labels)), labels], _TINY))
    return sure
