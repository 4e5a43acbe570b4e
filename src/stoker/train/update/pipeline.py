"""An update from start to finish, for one optimizer and its variables: gradients in, new weights out.

Each replica calls it with its own gradients. The work up to the sum over the replicas happens on the replica. The
decision whether to write, and the writing itself, happen once for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Tensor, Variable
from stoker.train.update.averaging import Averages
from stoker.train.update.clipping import Clip, make_dense
from stoker.train.update.optimizing import Optimizing, call_if
from stoker.train.update.patterns import path_of
from stoker.train.update.replicas import Replicas
from stoker.train.update.scaling import LossScaler, all_finite


class Accumulation:
    """Several small batches make the update of one large batch: their gradients and row counts are added up.

    Batches are weighted by their rows, so a shorter last batch of an epoch counts for less. Batches left at the end of
    an epoch make one more update. The result equals that of the large batch, up to rounding.
    """

    def __init__(self, batches: int, variables: Sequence[Variable]) -> None:
        self._batches = batches
        self._sums = [tf.Variable(tf.zeros(one.shape, one.dtype), trainable=False) for one in variables]
        self._rows = tf.Variable(0.0, trainable=False)
        self._count = tf.Variable(0, trainable=False, dtype=tf.int64)

    @property
    def variables(self) -> dict[str, Variable]:
        return {
            **{f"accumulation/{number}": total for number, total in enumerate(self._sums)},
            "accumulation/rows": self._rows,
            "accumulation/count": self._count,
        }

    def add(self, gradients: Sequence[Tensor], rows: Tensor) -> None:
        """Add the mean gradient of a batch with this many rows; None for a variable that takes no part."""
        for total, gradient in zip(self._sums, gradients, strict=True):
            if gradient is not None:
                total.assign_add(gradient * tf.cast(rows, gradient.dtype))
        self._rows.assign_add(rows)

    def turn(self) -> Tensor:
        """Count a batch, whether good or left out; return whether it was the last of its round."""
        last = self._count + 1 >= self._batches
        self._count.assign(tf.where(last, tf.zeros_like(self._count), self._count + 1))
        return last

    @property
    def pending(self) -> Tensor:
        """Whether any gradients wait for an update."""
        return self._rows > 0

    def take(self) -> list[Tensor]:
        """Return the mean gradient of all rows added, and reset the sums."""
        # The identities are needed because the variables are cleared before the means are used.
        rows = tf.identity(self._rows)
        means = [tf.identity(total) / tf.cast(rows, total.dtype) for total in self._sums]
        with tf.control_dependencies(means):
            for total in self._sums:
                total.assign(tf.zeros_like(total))
            self._rows.assign(0.0)
            self._count.assign(0)
        return means


# Copying weights and slots up to this size and putting them back takes about as long as asking the host.
LARGEST_COPIED = 16 * 2**20


def write_if(good: Tensor, write: Callable[[], object], state: Sequence[Tensor]) -> None:
    """In the graph, change variables if `good`, which only the device knows, without making the host wait.

    The host takes the branches of a graph: at every step the condition is copied to it, and nothing more is launched
    until it is there. If the weights are small and on an accelerator, it is faster to write in any case and then put
    the old values back. Both ways end with the same bits.

    Args:
        good: a boolean on the device.
        write: changes variables of `state`, and no others.
        state: TensorFlow variables, on one device.
    """
    if not _is_better_put_back(state):
        call_if(good, write)
        return
    before = [tf.identity(variable) for variable in state]
    write()
    for variable, value in zip(state, before, strict=True):
        variable.assign(tf.where(good, variable, value))


def _is_better_put_back(state: Sequence[Tensor]) -> bool:
    size = sum(variable.dtype.size * (variable.shape.num_elements() or 0) for variable in state)
    return size <= LARGEST_COPIED and any("CPU" not in str(variable.device) for variable in state)


class Update:
    """Turns the gradients of a step into new weights."""

    def __init__(
        self,
        optimizing: Optimizing,
        *,
        accumulation: Accumulation | None,
        averages: Averages | None,
        scaler: LossScaler | None,
        replicas: Replicas,
        guarded: bool,
    ) -> None:
        self.optimizing = optimizing
        self.accumulation = accumulation
        self.averages = averages
        self.scaler = scaler
        self._replicas = replicas
        self._guarded = guarded or scaler is not None
        self._present: list[int] = []

    def select(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """Return this replica's gradients that take part, in a form that can be added to those of the other replicas.

        Args:
            gradients: one for each variable of the optimizer, of the (scaled) mean loss of this replica's rows.
        """
        self._present = [index for index, gradient in enumerate(gradients) if gradient is not None]
        if not self._present:
            names = ", ".join(path_of(variable) for variable in self.optimizing.variables[:4])
            raise ArgumentError(f"the loss does not depend on any variable of its optimizer ({names}, ...).")
        present = [gradients[index] for index in self._present]
        if self._plain:
            return present
        shapes = [self.optimizing.variables[index].shape for index in self._present]
        # The summed rows of an embedding do not tell their number, but replicas must send the same shapes.
        return [tf.ensure_shape(make_dense(one), shape) for one, shape in zip(present, shapes, strict=True)]

    def apply(self, means: Sequence[Tensor], *, rows: Tensor, allowed: Tensor = True) -> Any:
        """Write the update; return whether the gradients were finite.

        Args:
            means: the means of what `select` returned, over the rows of all replicas.
            rows: the number of rows in all replicas' batches together.
            allowed: False prevents the step from writing.
        """
        present, count = self._present, len(self.optimizing.variables)
        whole = self._unscale(means)
        finite = all_finite([_values(gradient) for gradient in whole]) if self._guarded else tf.constant(True)

        def write(values: Sequence[Tensor], *flags: Tensor) -> None:
            self._write(_spread(values, present, count), *flags)

        self._replicas.once(write, whole, finite, tf.convert_to_tensor(allowed), rows)
        return finite

    def flush(self) -> None:
        """Write what accumulation still holds. The host calls this at the end of an epoch."""
        if self.accumulation is not None:
            waiting = self.accumulation
            tf.cond(waiting.pending, lambda: self._write_now(self._take_means(waiting)), lambda: False)

    def _unscale(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """Return the gradient of the whole batch's mean loss."""
        if self.scaler is None:
            return list(gradients)
        scale = tf.convert_to_tensor(self.scaler.scale)
        return [gradient / tf.cast(scale, gradient.dtype) for gradient in gradients]

    @property
    def _plain(self) -> bool:
        """Whether gradients may stay as they are, including those that hold only some rows of an embedding."""
        clipped = self.optimizing.clip is not None
        return not (clipped or self._replicas.distributed or self.scaler or self.accumulation)

    def _write(self, gradients: Sequence[Tensor], finite: Tensor, allowed: Tensor, rows: Tensor) -> None:
        first = self._replicas.first
        finite, allowed, rows = first(finite), first(allowed), first(rows)
        good = finite & allowed
        if self.accumulation is not None:
            self._accumulate(self.accumulation, gradients, good, rows)
        elif self._guarded:
            self._write_if(good, gradients)
        else:
            self._write_now(gradients)
        if self.scaler is not None:
            self.scaler.move(finite)

    def _write_if(self, good: Tensor, gradients: Sequence[Tensor]) -> None:
        if self._replicas.distributed:
            tf.cond(good, lambda: self._write_now(gradients), lambda: False)
            return
        averages = self.averages.variables.values() if self.averages is not None else ()
        state = [*self.optimizing.state, *averages]
        write_if(good, lambda: self._write_now(gradients), state)

    def _accumulate(
        self, sums: Accumulation, gradients: Sequence[Tensor], good: Tensor, rows: Tensor
    ) -> None:
        firsts = [None if gradient is None else self._replicas.first(gradient) for gradient in gradients]

        def take_in() -> bool:
            sums.add(firsts, rows)
            return True

        tf.cond(good, take_in, lambda: False)
        last = sums.turn()
        tf.cond(last & sums.pending, lambda: self._write_now(self._take_means(sums)), lambda: False)

    def _take_means(self, sums: Accumulation) -> list[Tensor]:
        means = sums.take()
        return _spread([means[index] for index in self._present], self._present, len(means))

    def _write_now(self, gradients: Sequence[Tensor]) -> bool:
        self.optimizing.write(gradients)
        if self.averages is not None:
            self.averages.update()
        return True


def _values(gradient: Tensor) -> Tensor:
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def _spread(values: Sequence[Tensor], indices: Sequence[int], count: int) -> list[Tensor]:
    """Return a list with the values at their indices and None elsewhere."""
    found: list[Tensor] = [None] * count
    for index, value in zip(indices, values, strict=True):
        found[index] = value
    return found


def limits(given: Clip | None, of_optimizer: Clip | None) -> Clip | None:
    """Return the trainer's limits, or else those of the optimizer; giving both is an error."""
    if given is not None and of_optimizer is not None:
        raise ArgumentError(
            f"the optimizer was made with {of_optimizer} and the trainer with {given}: leave one out."
        )
    return given or of_optimizer
