"""Keras' training step with gradients computed a few rows at a time: the whole batch's numbers in less memory.

Whatever Keras does once per batch happens once: the update, with its clipping and its check for infinities, one count
of the optimizer, one value for the trackers of losses. A loss may divide by the number of values that a mask leaves, or
by the sum of the sample weights. Such a loss is divided by the sum for the whole batch, which a separate pass computes
first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf

from stoker.tf_internals import keras_losses, keras_training
from stoker.tf_internals.keras_layers import layers_of, mask_of, set_mask
from stoker.tf_internals.keras_losses import LossTerm
from stoker.tf_internals.types import LogValue, Model, Nest, Tensor
from stoker.train.execution.own_methods import is_own
from stoker.train.execution.parts import Computed, PartSize, add_up, own_floats, slopes_of

# The reductions of losses whose parts can be put together.
REDUCTIONS = ("sum_over_batch_size", "mean", "auto", "sum", "mean_with_sample_weight")


def find_refusal(model: Model) -> str | None:
    """Return why a batch of a compiled model cannot be cut into parts; None if it can be."""
    if model.run_eagerly or tf.config.functions_run_eagerly():
        return "steps run eagerly"
    if is_own(model, "train_step"):
        return f"{type(model).__name__} has a train_step of its own: write it as the step of a stoker.Trainer"
    for loss in keras_training.given_losses(model):
        reduction = getattr(loss, "reduction", "auto")
        if reduction not in REDUCTIONS:
            return f"the loss {loss.name!r} has reduction={reduction!r}: leave it out"
    regular = any(getattr(one, "activity_regularizer", None) is not None for one in layers_of(model))
    if regular and keras_losses.adds_up_activities():
        return "this Keras adds up the penalty of an activity_regularizer over the rows"
    return find_fixed_size(model)


def find_fixed_size(model: Model) -> str | None:
    """Return why the number of rows cannot change: the model is made for one number, as with a stateful LSTM."""
    inputs = [] if not model.built else keras.tree.flatten(getattr(model, "inputs", None) or [])
    sizes = [one.shape[0] for one in inputs if one is not None and one.shape and one.shape[0] is not None]
    return f"the model was made for batches of {sizes[0]} rows" if sizes else None


@dataclass
class PartedLoss:
    """The loss of a compiled model, part by part."""

    model: Model
    # The numbers of the losses that divide by something that only the data tells; known once a part was traced.
    counted: set[int] = field(default_factory=set)
    # Whether the losses given to `compile` are used; a model's own `compute_loss` may do without them.
    called: bool = False

    def count(self, batch: Nest, size: PartSize) -> Tensor:
        """In the graph, return what each loss divides by, for the whole batch.

        Only the necessary part of the forward pass runs.
        """
        terms = keras_losses.term_count(self.model)
        if not self.counted:
            return tf.zeros([terms])

        def compute(part: Nest, *_: Tensor) -> Computed:
            found: list[Tensor] = [tf.zeros([])] * terms

            def note(number: int, term: LossTerm) -> Tensor:
                if term.divisor is not None:
                    found[number] = term.divisor
                return term.value

            with keras_losses.losses_replaced(self.model, note):
                keras_training.forward(self.model, part, training=False)
            return Computed([tf.stack(found)])

        (divisors,) = add_up(batch, size, compute).added
        return divisors

    def forward(self, part: Nest, share: Tensor, divisors: Tensor) -> tuple[Tensor, list[Tensor], Nest]:
        """In the graph, return a part's loss and that of each output, as shares of the batch's, and its predictions."""
        values: list[Tensor] = []

        def scale(number: int, term: LossTerm) -> Tensor:
            self.called = True
            value = term.value
            if term.is_sum:
                value /= tf.cast(share, value.dtype)
            elif term.divisor is not None:
                self.counted.add(number)
                value *= tf.cast(tf.math.divide_no_nan(term.divisor, divisors[number] * share), value.dtype)
            values.append(tf.cast(value, tf.float32) * share)
            return value

        with keras_losses.losses_replaced(self.model, scale):
            loss, predicted = keras_training.forward(self.model, part, training=True)
        return loss * tf.cast(share, loss.dtype), values, predicted


def parted_step(model: Model, batch: Nest, size: PartSize, *, compiled: bool) -> dict[str, LogValue]:
    """In the graph, run one training step of a compiled model; return the results of its metrics.

    Args:
        model: a built model with its optimizer.
        batch: the whole batch.
        size: the size of a part.
        compiled: whether XLA compiles the computation of a part.
    """
    optimizer, weights = model.optimizer, model.trainable_weights

    def find_slopes(tape: tf.GradientTape, loss: Tensor) -> list[Any]:
        with tape:
            scaled = loss if optimizer is None else optimizer.scale_loss(loss)
        return slopes_of(tape, scaled, [one.value for one in weights])

    done = run_parts(model, batch, size, find_slopes, compiled=compiled)
    if weights:
        optimizer.apply_gradients(zip(done.gradients, weights, strict=True))
    return done.results if done.results is not None else dict(model.get_metrics_result())


@dataclass(frozen=True)
class PartsDone:
    """A batch's loss and its gradients, and the results of metrics that saw the whole batch."""

    loss: Tensor
    gradients: list[Any]
    results: dict[str, LogValue] | None


def run_parts(
    model: Model,
    batch: Nest,
    size: PartSize,
    find_slopes: Callable[[tf.GradientTape, Tensor], list[Any]],
    *,
    compiled: bool,
) -> PartsDone:
    """In the graph, go forward and backward over the parts of a batch; update the metrics and the means of the losses.

    Args:
        model: a built model.
        batch: the whole batch, or a replica's share.
        size: the size of a part.
        find_slopes: takes a stopped tape and a part's share of the loss; returns the gradients to add up.
        compiled: whether XLA compiles the computation of a part.
    """
    loss, outputs, whole = PartedLoss(model), list[Nest](), not _are_sums_over_rows(model)

    def compute(part: Nest, share: Tensor, divisors: Tensor) -> Computed:
        with tf.GradientTape() as tape:
            own, values, predicted = loss.forward(part, share, divisors)
        outputs.append(predicted)
        return Computed([own, *values, *find_slopes(tape, own)], _list_seen(predicted))

    def note(part: Nest, seen: Sequence[Tensor]) -> None:
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(part)
        model.compute_metrics(x, y, _rebuild(outputs[-1], seen), sample_weight=sample_weight)

    done = add_up(
        batch,
        size,
        compute,
        told=lambda: loss.count(batch, size),
        state=own_floats([model]),
        note=None if whole else note,
        joined=whole,
        compiled=compiled,
    )
    terms, results = keras_losses.term_count(model) if loss.called else 0, None
    total, values, gradients = done.added[0], done.added[1 : 1 + terms], done.added[1 + terms :]
    first = next(one for one in keras.tree.flatten(batch) if one is not None)
    keras_training.loss_tracker(model).update_state(total, sample_weight=tf.shape(first)[0])
    for tracker, value in zip(keras_losses.term_trackers(model), values, strict=False):
        # Weighted as in Keras: by the rows, if TensorFlow knows their number beforehand.
        tracker.update_state(value, sample_weight=first.shape[0])
    if whole:
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
        results = dict(
            model.compute_metrics(x, y, _rebuild(outputs[-1], done.seen), sample_weight=sample_weight)
        )
    return PartsDone(total, gradients, results)


def _are_sums_over_rows(model: Model) -> bool:
    """Return whether all metrics may see a few rows at a time; otherwise they see the whole batch's predictions."""
    own = is_own(model, "compute_metrics")
    return not own and all(map(keras_losses.is_sum_over_rows, keras_losses.compiled_metrics(model)))


def _list_seen(predicted: Nest) -> list[Tensor]:
    """List predictions and the masks attached to them, which would otherwise be lost."""
    flat = keras.tree.flatten(predicted)
    return [*flat, *(mask for mask in map(mask_of, flat) if mask is not None)]


def _rebuild(outline: Nest, seen: Sequence[Tensor]) -> Nest:
    """Rebuild the predictions from such a list."""
    flat = keras.tree.flatten(outline)
    values, masks = list(seen[: len(flat)]), iter(seen[len(flat) :])
    for one, value in zip(flat, values, strict=True):
        if mask_of(one) is not None:
            set_mask(value, next(masks))
    return keras.tree.pack_sequence_as(outline, values)
