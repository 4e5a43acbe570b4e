"""Keras' losses while a step is traced: each loss multiplied by a factor, and the divisor of its sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

# Import the module: its `Loss` is the class whose `__call__` is known here.
from keras.src.losses import loss as _losses

from stoker.tf_internals.keras_layers import mask_of
from stoker.tf_internals.types import Loss, Metric, Model, Nest, Tensor

# Reductions that divide by the number of values; under a mask, by the number of unmasked values.
MEAN_REDUCTIONS = ("sum_over_batch_size", "mean", "auto")


@dataclass(frozen=True)
class LossTerm:
    """The result of one loss of a compiled model for some rows.

    Attributes:
        value: the loss, before its weight.
        divisor: the divisor of the sum, if it is not proportional to the number of rows: under a mask, or if it is the
            sum of the sample weights.
        is_sum: whether the sum was not divided at all.
    """

    value: Tensor
    divisor: Tensor = None
    is_sum: bool = False


def term_count(model: Model) -> int:
    """Return the number of losses with which a built model was compiled."""
    compiled = model._compile_loss
    return 0 if compiled is None else len(compiled._flat_losses)


def term_trackers(model: Model) -> list[Metric]:
    """Return the trackers of each output's mean loss in the logs; none if there is only one loss."""
    compiled = model._compile_loss
    return [] if compiled is None else list(compiled.metrics)


@contextmanager
def losses_replaced(model: Model, change: Callable[[int, LossTerm], Tensor]) -> Iterator[None]:
    """Replace each loss with `change(number, term)` while a step is traced, and keep all values from the trackers."""
    compiled = model._compile_loss
    if compiled is None:
        yield
        return
    plain = compiled._flat_losses

    def replace(number: int, loss: Loss) -> Callable[..., Tensor]:
        return lambda *given: change(number, find_term(loss, *given))

    trackers = term_trackers(model)
    compiled._flat_losses = [one._replace(loss=replace(i, one.loss)) for i, one in enumerate(plain)]
    for tracker in trackers:
        tracker.update_state = _ignore
    try:
        yield
    finally:
        compiled._flat_losses = plain
        for tracker in trackers:
            del tracker.update_state


def _ignore(*_: object, **__: object) -> None:
    return None


def find_term(loss: Loss, labels: Nest, predicted: Nest, weight: Tensor = None) -> LossTerm:
    """Compute a loss, and find what its sum was divided by."""
    seen: list[Tensor] = []
    with _results_seen(loss, seen):
        value = loss(labels, predicted, weight)
    reduction = getattr(loss, "reduction", "auto")
    if type(loss).__call__ is not _losses.Loss.__call__ or not seen:
        return LossTerm(value)
    if reduction == "sum":
        return LossTerm(value, is_sum=True)
    (values,) = seen
    # The mask is attached to the predictions, and to the loss of each row.
    masks = [one for one in (mask_of(predicted), mask_of(values)) if one is not None]
    if values.shape.rank == 0 or not (masks or reduction == "mean_with_sample_weight"):
        return LossTerm(value)
    return LossTerm(value, _find_divisor(values, masks, weight, reduction))


def _find_divisor(values: Tensor, masks: list[Tensor], weight: Tensor, reduction: str) -> Tensor:
    mask = None if not masks else tf.cast(tf.reduce_all(tf.stack(masks), axis=0), tf.float32)
    if reduction in MEAN_REDUCTIONS:
        every = tf.cast(tf.size(values), tf.float32) / tf.cast(tf.size(mask), tf.float32)
        return tf.reduce_sum(mask) * every
    counted = None if weight is None else tf.cast(weight, tf.float32)
    if mask is not None and counted is not None:
        mask, counted = _losses.squeeze_or_expand_to_same_rank(mask, counted)
        counted *= mask
    elif counted is None:
        counted = mask
    return None if counted is None else tf.reduce_sum(counted)


@contextmanager
def _results_seen(loss: Any, seen: list[Tensor]) -> Iterator[None]:
    """Collect in `seen` what the loss computes for each row, before the reduction, within the block."""
    plain, own = loss.call, vars(loss).get("call")

    def call(*given: Nest) -> Tensor:
        values = plain(*given)
        seen.append(values)
        return values

    loss.call = call
    try:
        yield
    finally:
        if own is None:
            del loss.call
        else:
            loss.call = own


def compiled_metrics(model: Model) -> list[Metric]:
    """Return the metrics that `compile` was given, once they are built."""
    compiled = model._compile_metrics
    return [] if compiled is None else list(compiled.metrics)


def is_sum_over_rows(metric: Metric) -> bool:
    """Return whether a metric may count rows a few at a time: true of Keras' own metrics of Keras' own functions."""
    function = getattr(metric, "_fn", None)
    made_by = [type(metric).__module__, getattr(function, "__module__", None) or "keras."]
    return all(one.startswith("keras.") for one in made_by)


def adds_up_activities() -> bool:
    """Return whether Keras sums the penalty of an `activity_regularizer` over the rows; newer versions average it."""
    plain = keras.layers.Identity(name="activities", activity_regularizer=tf.reduce_sum)
    plain(tf.ones([2, 1]))
    return float(plain.losses[0]) == 2.0
