"""The traces and compilations of a model, kept on it for training, validation, evaluate and predict alike.

One rule says when they are out of date: the model's Python side has changed, by another `compile`, a frozen layer or a
replaced activation. Then everything of that model is traced again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any, TypeVar

import keras
import tensorflow as tf

from stoker.tf_internals.keras_layers import layers_of
from stoker.tf_internals.keras_training import BOOKKEEPING, Trainer
from stoker.tf_internals.types import Array, Model, Tensor, TensorSpec
from stoker.train.execution.batch_function import (
    BatchFunction,
    BatchStep,
    Inner,
    InnerShapes,
    Skeleton,
    accepts,
    tracing,
)
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.loop import CompiledLoop
from stoker.train.execution.parts import Cut, PartSize

Owned = TypeVar("Owned")


@dataclass
class _Entry:
    loop: CompiledLoop
    shapes: InnerShapes | None
    step: Hashable


class KeptTraces:
    """The traces of one model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.python_side = PythonSide(model)
        self.functions: dict[Hashable, BatchFunction] = {}
        self._loops: dict[Hashable, _Entry] = {}
        self._owned: dict[type, Any] = {}

    def loop(
        self,
        kind: str,
        feed: BatchFeed,
        make: Callable[[], CompiledLoop],
        *,
        jit: str = "none",
        owner: object = None,
        fused: bool = False,
    ) -> CompiledLoop:
        """Return the loop of this kind of step for feeds like this one; `make` makes it at its first use.

        Args:
            kind: the step: "train_step" or "test_step".
            feed: the feed that the loop runs over now.
            make: returns a new loop over `feed`.
            jit: how the loop uses XLA.
            owner: the object whose step it is, compared by identity.
            fused: whether parts of the step are fused; see `fused_parts`.
        """
        key = (kind, jit, fused, id(owner), feed.signature())
        found, shapes = self._loops.get(key), feed.shapes
        if found is not None and (found.shapes is None or shapes is None or accepts(found.shapes, shapes)):
            found.loop.feed = feed
            return found.loop
        if found is not None and found.shapes is not None:
            feed.widen(found.shapes)
        loop = make()
        loop.owner = owner  # keeps its id from becoming another object's
        loop.when_traced = self._note_trace
        # Another number of rows, or another way of feeding: if the batches are alike, the step itself is the same.
        step = (kind, fused, id(owner), repr(feed.spec()))
        for entry in self._loops.values():
            if entry.step == step:
                loop.share(entry.loop)
        self._loops[key] = _Entry(loop, feed.shapes, step)
        return loop

    def keep_owned(self, kind: type[Owned], holds: Callable[[Owned], bool], *given: object) -> Owned:
        """Keep one object of each kind that makes steps, for as long as `holds` is true of it."""
        found = self._owned.get(kind)
        if found is None or not holds(found):
            found = self._owned[kind] = kind(*given)
        return found

    def _note_trace(self) -> None:
        """Note the Python side again, because tracing builds layers that were not built."""
        self.python_side = PythonSide(self.model)

    def release(self) -> None:
        """After a run, keep the loops, but release their data."""
        for entry in self._loops.values():
            entry.loop.release()

    def batch_function(
        self,
        kind: str,
        step: Callable[[Model], BatchStep],
        skeleton: Skeleton,
        leaves: Sequence[Array | Tensor | TensorSpec],
        rows: int | None = None,
    ) -> BatchFunction:
        """Return the function of one batch for inputs like these, traced if necessary; `rows` fixes their number."""
        key = (kind, rows, skeleton, tuple([(tf.as_dtype(leaf.dtype), len(leaf.shape)) for leaf in leaves]))
        inner = tuple([tuple(leaf.shape[1:]) for leaf in leaves])
        found = self.functions.get(key)
        if found is not None and (found.inner == inner or accepts(found.inner, inner)):
            return found
        with tracing:
            if found is not None:
                inner = tuple(map(_widen, found.inner, inner))
            specs = [
                tf.TensorSpec([rows, *sizes], leaf.dtype) for sizes, leaf in zip(inner, leaves, strict=True)
            ]
            traced = BatchFunction(self.model, step(self.model), skeleton, specs)
            self.functions[key] = traced
            self._note_trace()
        return traced


def traces_of(model: keras.Model) -> KeptTraces:
    """Return the traces of the model; empty if the model has changed since."""
    found: KeptTraces | None = model.__dict__.get(ATTRIBUTE)
    if found is not None and found.model is model and found.python_side.holds(model):
        return found
    fresh = KeptTraces(model)
    # Kept on the model itself, so that both go together; written past Keras' and TensorFlow's tracking of attributes.
    model.__dict__[ATTRIBUTE] = fresh
    return fresh


def part_size_of(model: Model, cut: Cut) -> PartSize:
    """Set the size of the parts into which the model's loops cut batches, and return it."""
    size = traces_of(model).keep_owned(PartSize, lambda _: True)
    size.assign(cut)
    return size


def _widen(known: Inner, given: Inner) -> Inner:
    return tuple(size if size == other else None for size, other in zip(known, given, strict=True))


# The attribute in which a model holds its traces.
ATTRIBUTE = "_stoker_compiled"
_BOOKKEEPING = BOOKKEEPING | {ATTRIBUTE}
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class PythonSide:
    """The Python side of a model at one moment: its layers, and the attributes of each.

    A traced function reads weights through their variables, so new values need no new trace. Everything else was read
    from Python while it was traced: the layers, their dtype policies, activations, rates and other attributes. These
    are held by identity; comparing them takes about a microsecond per layer.
    """

    __slots__ = ("_values",)

    def __init__(self, model: Model) -> None:
        self._values = _values(model)

    def holds(self, model: Model) -> bool:
        """Return whether the model is still as it was, apart from the values of its weights."""
        then, now = self._values, _values(model)
        if len(then) != len(now):
            return False
        return all(map(is_, then, now)) or all(map(_is_same, then, now))


def _values(model: Model) -> list[object]:
    values: list[object] = []
    for layer in layers_of(model):
        values.append(layer)
        attributes = layer.__dict__
        if isinstance(layer, Trainer):
            values += [value for name, value in attributes.items() if name not in _BOOKKEEPING]
        else:
            values += attributes.values()
    return values


def _is_same(then: object, now: object) -> bool:
    """Return whether this is the same object, or a plain value that is equal to the earlier one."""
    return then is now or (type(then) is type(now) and isinstance(now, _PLAIN) and bool(then == now))
