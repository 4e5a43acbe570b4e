"""What was traced and compiled of a model, kept on it for training, validation, evaluate and predict alike.

One rule says when it is out of date: the model's Python side is not what it was (`staleness`): another `compile`, a
layer that was frozen, an activation replaced. Then everything of that model is traced again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import keras
import tensorflow as tf

from stoker.tf_internals.types import Array, Model, Tensor, TensorSpec
from stoker.train.execution.batch_function import (
    BatchFunction,
    BatchStep,
    Inner,
    InnerShapes,
    accepts,
    tracing,
)
from stoker.train.execution.feed import Feed
from stoker.train.execution.loop import Loop
from stoker.train.execution.staleness import ATTRIBUTE, PythonSide
from stoker.train.execution.structures import Skeleton

Owned = TypeVar("Owned")


@dataclass
class _Entry:
    loop: Loop
    shapes: InnerShapes | None
    step: Hashable


class Kept:
    """What has been traced of one model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.python_side = PythonSide(model)
        self.functions: dict[Hashable, BatchFunction] = {}
        self._loops: dict[Hashable, _Entry] = {}
        self._owned: dict[type, Any] = {}

    def loop(
        self,
        kind: str,
        feed: Feed,
        make: Callable[[], Loop],
        *,
        jit: str = "none",
        owner: object = None,
        fused: bool = False,
    ) -> Loop:
        """The loop of this kind of step for feeds like this one; `make` makes it at its first use.

        Args:
            kind: which step: "train_step", "test_step".
            feed: what it runs over now.
            make: a new loop over `feed`.
            jit: how XLA is used in it.
            owner: whose step it is; compared by identity.
            fused: whether parts of it are: see `fused_parts`.
        """
        key = (kind, jit, fused, id(owner), feed.signature())
        found, shapes = self._loops.get(key), feed.shapes
        if found is not None and (found.shapes is None or shapes is None or accepts(found.shapes, shapes)):
            found.loop.feed = feed
            return found.loop
        if found is not None and found.shapes is not None:
            feed.widen(found.shapes)
        loop = make()
        loop.owner = owner  # or its id could become another's
        loop.when_traced = self._traced
        # Another number of rows, or another way of feeding: the step itself is the same if its batches are.
        step = (kind, fused, id(owner), repr(feed.spec()))
        for entry in self._loops.values():
            if entry.step == step:
                loop.share(entry.loop)
        self._loops[key] = _Entry(loop, feed.shapes, step)
        return loop

    def owned(self, kind: type[Owned], holds: Callable[[Owned], bool], *given: object) -> Owned:
        """What makes the steps of loops, one of its kind, for as long as it `holds`."""
        found = self._owned.get(kind)
        if found is None or not holds(found):
            found = self._owned[kind] = kind(*given)
        return found

    def _traced(self) -> None:
        """Tracing builds what was not built yet."""
        self.python_side = PythonSide(self.model)

    def release(self) -> None:
        """After a run: the loops are kept, the data they ran over is not."""
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
        """The function of one batch for inputs like these, traced if it has to be; `rows` fixes their number."""
        key = (kind, rows, skeleton, tuple([(tf.as_dtype(leaf.dtype), len(leaf.shape)) for leaf in leaves]))
        inner = tuple([tuple(leaf.shape[1:]) for leaf in leaves])
        found = self.functions.get(key)
        if found is not None and (found.inner == inner or accepts(found.inner, inner)):
            return found
        with tracing:
            if found is not None:
                inner = tuple(map(_widened, found.inner, inner))
            specs = [
                tf.TensorSpec([rows, *sizes], leaf.dtype) for sizes, leaf in zip(inner, leaves, strict=True)
            ]
            traced = BatchFunction(self.model, step(self.model), skeleton, specs)
            self.functions[key] = traced
            self._traced()
        return traced


def kept(model: keras.Model) -> Kept:
    """What is traced of the model, empty if the model is not what it was."""
    found: Kept | None = model.__dict__.get(ATTRIBUTE)
    if found is not None and found.model is model and found.python_side.holds(model):
        return found
    fresh = Kept(model)
    # On the model itself, so that both go together; past Keras' and TensorFlow's tracking of attributes.
    model.__dict__[ATTRIBUTE] = fresh
    return fresh


def _widened(known: Inner, given: Inner) -> Inner:
    return tuple(size if size == other else None for size, other in zip(known, given, strict=True))
