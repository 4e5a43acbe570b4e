"""A batch in parts: something is computed for a few rows at a time and added up, so that it needs less memory.

    size = PartSize()
    size.assign(Cut(parts=4, batch_rows=256))
    total, *gradients = add_up(batch, size, compute).added        # in graph

Each part counts with its share of the rows, so a sum of means is the mean over the batch. All parts but the last have
equally many rows. How many is a variable, so that one trace serves any number of parts. Only the sums outlive a part,
and nothing is kept between batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.keras_layers import layers_of, own_state
from stoker.tf_internals.types import Model, Nest, Tensor, TensorSpec, Variable

# The name of the variable behind a `PartSize`. Checkpoints leave the variable out, because the plan has its value.
PART_SIZE = "stoker_part_size"


@dataclass(frozen=True)
class Cut:
    """Into how many parts to cut a batch, and how many rows the batch has on a replica; None if not known."""

    parts: int
    batch_rows: int | None

    @property
    def part_rows(self) -> int | None:
        """The number of rows in a part."""
        return None if self.batch_rows is None else -(-self.batch_rows // self.parts)


class PartSize:
    """The number of rows in a part: fixed, or the batch's rows divided by a number of parts."""

    def __init__(self) -> None:
        with tf.init_scope(), tf.device("CPU:0"):
            # On the host, which cuts the parts. A value below 0 is the number of parts.
            self._value = tf.Variable(-1, trainable=False, dtype=tf.int32, name=PART_SIZE)

    def assign(self, cut: Cut) -> None:
        """Cut batches of this many rows into this many parts, and smaller batches into fewer parts of the same size."""
        rows = cut.part_rows
        self._value.assign(-cut.parts if rows is None else rows)

    def rows_of(self, batch_rows: Tensor) -> Tensor:
        """In the graph, return the number of rows in a part of this batch."""
        value = tf.identity(self._value)
        return tf.where(value > 0, value, -(batch_rows // tf.minimum(value, -1)))


@dataclass(frozen=True)
class Computed:
    """The result of computing one part.

    Attributes:
        added: the values to add up, already multiplied by the part's share: tensors, gradients of some rows, or None.
        seen: the values to hand on when the part is done.
    """

    added: list[Tensor]
    seen: list[Tensor] = field(default_factory=list)


# Takes the rows of a part, their share of the batch, and numbers about the whole batch.
Compute = Callable[[Nest, Tensor, Tensor], Computed]


def _tell_nothing() -> Tensor:
    return tf.zeros([0])


def add_up(
    batch: Nest,
    size: PartSize,
    compute: Compute,
    *,
    told: Callable[[], Tensor] = _tell_nothing,
    state: Sequence[Variable] = (),
    note: Callable[[Nest, list[Tensor]], None] | None = None,
    joined: bool = False,
    compiled: bool = False,
) -> Computed:
    """In the graph, add up what `compute` returns for the parts of a batch.

    Args:
        batch: tensors with the same number of rows.
        size: the size of a part.
        compute: the computation of a part; traced once, makes no variables.
        told: called once `compute` was traced; returns the vector of numbers that `compute` takes.
        state: float variables that a part changes itself. All parts see the values from before the batch; then the
            variables change by the mean of the parts' changes.
        note: called in graph with each part and its `seen` values.
        joined: whether to return the `seen` values of all parts, one part after the other.
        compiled: whether XLA compiles `compute`, for each number of rows.
    """
    rows = _count_rows(batch)
    # A replica may have no rows.
    part_rows = tf.maximum(size.rows_of(rows), 1)
    count = -(-rows // part_rows)
    traced = _trace(compute, batch, compiled)
    outline, numbers = traced.structured_outputs, told()
    before = [tf.identity(one) for one in state]
    sums = _Sums([*outline["added"], *before], count)
    arrays = [_new_array(one.dtype, one.shape, count) for one in outline["seen"]] if joined else []

    def body(number: Tensor, held: Nest, kept: Nest) -> Nest:
        part = _slice(batch, number * part_rows, part_rows, rows)
        share = tf.cast(_count_rows(part), tf.float32) / tf.cast(rows, tf.float32)
        done = traced(part, share, numbers)
        moved = []
        for one, start in zip(state, before, strict=True):
            moved.append((tf.convert_to_tensor(one) - start) * tf.cast(share, start.dtype))
            one.assign(start)
        if note is not None:
            note(part, done["seen"])
        kept = [array.write(number, value) for array, value in zip(kept, done["seen"], strict=False)]
        return number + 1, sums.add(number, held, [*done["added"], *moved]), kept

    _, held, kept = tf.while_loop(
        lambda number, *_: number < count,
        body,
        (tf.constant(0), sums.start(), arrays),
        # One part after the other: this is the purpose of parts.
        parallel_iterations=1,
    )
    found = sums.finish(held)
    for one, start, change in zip(state, before, found[len(outline["added"]) :], strict=True):
        one.assign(start + change)
    return Computed(found[: len(outline["added"])], [array.concat() for array in kept])


def slopes_of(
    tape: tf.GradientTape, loss: Tensor, variables: Sequence[Variable], slope: Tensor = None
) -> list[Any]:
    """Return the gradients of a loss, given the slope at the loss, with the static shapes that their sums need."""
    found = tape.gradient(loss, list(variables), output_gradients=slope) if variables else []
    return [
        one if one is None or isinstance(one, tf.IndexedSlices) else tf.ensure_shape(one, variable.shape)
        for one, variable in zip(found, variables, strict=True)
    ]


def own_floats(models: Iterable[Model]) -> list[Variable]:
    """Return the float variables that layers made for themselves, such as moving statistics, as TensorFlow's."""
    found = {
        id(variable): variable.value
        for model in models
        for layer in layers_of(model)
        for variable in own_state(layer)
        if tf.as_dtype(variable.dtype).is_floating
    }
    return list(found.values())


def _trace(compute: Compute, batch: Nest, compiled: bool) -> Any:
    def run(part: Nest, share: Tensor, numbers: Tensor) -> dict[str, list[Tensor]]:
        done = compute(part, share, numbers)
        return {"added": done.added, "seen": done.seen}

    function = tf.function(run, autograph=False, jit_compile=True if compiled else None)
    specs = _map(lambda leaf: _open_spec(leaf), batch)
    return function.get_concrete_function(
        specs, tf.TensorSpec([], tf.float32), tf.TensorSpec([None], tf.float32)
    )


def _open_spec(leaf: Tensor) -> TensorSpec:
    if not isinstance(leaf, tf.Tensor) or leaf.shape.rank == 0:
        raise ArgumentError("the data is sparse or ragged: a batch of it cannot be cut into parts")
    return tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype)


def _map(function: Callable[[Tensor], Any], batch: Nest) -> Nest:
    return keras.tree.map_structure(lambda leaf: None if leaf is None else function(leaf), batch)


def _count_rows(batch: Nest) -> Tensor:
    return tf.shape(next(leaf for leaf in keras.tree.flatten(batch) if leaf is not None))[0]


def _slice(batch: Nest, start: Tensor, count: Tensor, rows: Tensor) -> Nest:
    return _map(lambda leaf: leaf[start : tf.minimum(start + count, rows)], batch)


def _new_array(dtype: tf.DType, shape: tf.TensorShape, count: Tensor) -> tf.TensorArray:
    return tf.TensorArray(dtype, count, infer_shape=False, element_shape=[None, *shape[1:]])


class _Sums:
    """Sums of tensors over the parts. Gradients of some rows of a table are kept side by side, as in a whole batch."""

    def __init__(self, outline: Sequence[Any], count: Tensor) -> None:
        self._outline = list(outline)
        self._count = count

    def start(self) -> list[Nest]:
        """Return the empty sums."""
        return [self._start_of(one) for one in self._outline]

    def _start_of(self, one: Any) -> Nest:
        if one is None:
            return ()
        if isinstance(one, tf.IndexedSlices):
            return tuple(
                _new_array(each.dtype, each.shape, self._count) for each in (one.values, one.indices)
            )
        # Not `tf.zeros`: TensorFlow would turn it into a constant, which stays on the device for good.
        shape = tf.constant(one.shape.as_list(), tf.int32)
        return tf.raw_ops.Empty(shape=shape, dtype=_sum_type(one.dtype), init=True)

    def add(self, number: Tensor, held: Sequence[Nest], values: Sequence[Any]) -> list[Nest]:
        """Return the sums with the values of one more part."""
        found: list[Nest] = []
        for outline, one, value in zip(self._outline, held, values, strict=True):
            if outline is None:
                found.append(())
            elif isinstance(outline, tf.IndexedSlices):
                pair = zip(one, (value.values, value.indices), strict=True)
                found.append(tuple(array.write(number, each) for array, each in pair))
            else:
                found.append(one + tf.cast(value, one.dtype))
        return found

    def finish(self, held: Sequence[Nest]) -> list[Any]:
        """Return the sums, with the types and kinds of the values that were added."""
        found: list[Any] = []
        for outline, one in zip(self._outline, held, strict=True):
            if outline is None:
                found.append(None)
            elif isinstance(outline, tf.IndexedSlices):
                values, indices = (array.concat() for array in one)
                found.append(tf.IndexedSlices(values, indices, tf.constant(outline.shape.as_list())))
            else:
                found.append(tf.cast(one, outline.dtype))
        return found


def _sum_type(dtype: tf.DType) -> tf.DType:
    """Return the type of a sum. Sums of 16-bit values use 32 bits, as in a kernel that adds up a whole batch."""
    return tf.float32 if dtype.is_floating and dtype.size < 4 else dtype
