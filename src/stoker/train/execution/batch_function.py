"""A step of one batch, traced for any number of rows, and the compiled loops around it: what predict calls.

Row counts are left open in its signature, so that no number of rows traces again (only a single row has a function of
its own: with one row as a constant the graph is a good deal shorter); another inner shape opens the dimensions in
which it differs. So the number of traces is bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import keras
import tensorflow as tf

from stoker.tf_internals.types import Nest, Tensor, TensorSpec
from stoker.train.execution.tracing import drop_trivial_products

LEAF = "*"
ABSENT = "-"
# A leaf, nothing, or the names (None for a tuple) and the skeletons of the children.
Skeleton: TypeAlias = str | tuple[Any, ...]


def flatten(value: Nest, leaves: list[Tensor]) -> Skeleton:
    """Append the leaves of nested data in order; return its hashable skeleton, which `rebuild` takes.

    Lists are taken as tuples, the way an element of tf.data has them.
    """
    if value is None:
        return ABSENT
    if isinstance(value, Mapping):
        names = tuple(sorted(value))
        return (names, *(flatten(value[name], leaves) for name in names))
    if isinstance(value, (list, tuple)):
        return (None, *(flatten(child, leaves) for child in value))
    leaves.append(value)
    return LEAF


def rebuild(skeleton: Skeleton, leaves: Iterator[Tensor]) -> Nest:
    """The structure again, with the next leaves in it."""
    if isinstance(skeleton, str):
        return next(leaves) if skeleton == LEAF else None
    names, *children = skeleton
    parts = tuple(rebuild(child, leaves) for child in children)
    return parts if names is None else dict(zip(names, parts, strict=True))


BatchStep = Callable[[Nest], Nest]
Inner = tuple[int | None, ...]
InnerShapes = tuple[Inner, ...]

tracing = threading.RLock()
"""Held while something is traced: predict may be called from several threads."""


class BatchFunction:
    """A step of one batch as a concrete function, and the inner shapes it was traced for."""

    def __init__(
        self, model: keras.Model, step: BatchStep, skeleton: Skeleton, specs: Sequence[tf.TensorSpec]
    ) -> None:
        self.inner: tuple[Inner, ...] = tuple(tuple(spec.shape[1:]) for spec in specs)
        self.specs = list(specs)
        # XLA where Keras would use it: on the step.
        compiled = tf.function(step, jit_compile=True) if model.jit_compile else step

        def one_batch(*leaves: Tensor) -> Nest:
            return compiled(rebuild(skeleton, iter(leaves)))

        function = tf.function(drop_trivial_products(one_batch), input_signature=self.specs, autograph=False)
        self.call = function.get_concrete_function()
        self.outputs = tf.nest.map_structure(_spec_of, self.call.structured_outputs)
        self._loops: dict[str, Callable[..., Nest]] = {}
        self.batch_seconds: float | None = None  # what a batch took last, when many were run
        self.single_calls = 0  # batches of datasets that were too short to be worth a loop

    def joinable(self) -> bool:
        """Whether outputs can be joined in the graph: dense, with all dimensions known but the rows."""
        return all(
            isinstance(spec, tf.TensorSpec)
            and spec.shape.rank is not None
            and (spec.shape.rank == 0 or spec.shape[1:].is_fully_defined())
            for spec in tf.nest.flatten(self.outputs)
        )

    def has_loop(self, name: str) -> bool:
        """Whether the loop of this name was made."""
        return name in self._loops

    def loop(self, name: str, make: Callable[[], Callable[..., Nest]]) -> Callable[..., Nest]:
        """The compiled loop around this step, made at its first use."""
        with tracing:
            if name not in self._loops:
                self._loops[name] = make()
            return self._loops[name]


def accepts(known: Sequence[Inner], given: Sequence[Inner]) -> bool:
    """Whether what was traced for these inner shapes takes those."""
    return all(
        size is None or size == other
        for mine, others in zip(known, given, strict=True)
        for size, other in zip(mine, others, strict=True)
    )


def _spec_of(output: Nest) -> TensorSpec:
    return tf.TensorSpec(output.shape, output.dtype) if isinstance(output, tf.Tensor) else output
