"""A step of one batch, traced for any number of rows, and the compiled loops around it, for predict.

The signature leaves the row count open, so no number of rows causes another trace. (Only a single row has a function of
its own: with one row as a constant, the graph is much shorter.) Another inner shape opens the dimensions in which it
differs. So the number of traces is bounded.
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
# A leaf, an absent value, or the names (None for a tuple) and the skeletons of the children.
Skeleton: TypeAlias = str | tuple[Any, ...]


def flatten(value: Nest, leaves: list[Tensor]) -> Skeleton:
    """Append the leaves of nested data in order; return its hashable skeleton, which `rebuild` takes.

    Lists become tuples, as in an element of tf.data.
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
    """Rebuild the structure, with the next leaves in it."""
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
    """A step of one batch as a concrete function, and the inner shapes for which it was traced."""

    def __init__(
        self, model: keras.Model, step: BatchStep, skeleton: Skeleton, specs: Sequence[tf.TensorSpec]
    ) -> None:
        self.inner: tuple[Inner, ...] = tuple(tuple(spec.shape[1:]) for spec in specs)
        self.specs = list(specs)
        # XLA on the step, as Keras would use it.
        compiled = tf.function(step, jit_compile=True) if model.jit_compile else step

        def one_batch(*leaves: Tensor) -> Nest:
            return compiled(rebuild(skeleton, iter(leaves)))

        function = tf.function(drop_trivial_products(one_batch), input_signature=self.specs, autograph=False)
        self.call = function.get_concrete_function()
        self.outputs = tf.nest.map_structure(_spec_of, self.call.structured_outputs)
        self._loops: dict[str, Callable[..., Nest]] = {}
        self.batch_seconds: float | None = None  # seconds per batch in the last run of many
        self.single_calls = 0  # batches of datasets too short to be worth a loop

    def joinable(self) -> bool:
        """Return whether outputs can be joined in the graph: dense, with all dimensions but the rows known."""
        return all(
            isinstance(spec, tf.TensorSpec)
            and spec.shape.rank is not None
            and (spec.shape.rank == 0 or spec.shape[1:].is_fully_defined())
            for spec in tf.nest.flatten(self.outputs)
        )

    def has_loop(self, name: str) -> bool:
        """Return whether the loop of this name exists."""
        return name in self._loops

    def loop(self, name: str, make: Callable[[], Callable[..., Nest]]) -> Callable[..., Nest]:
        """Return the compiled loop around this step; `make` makes it at its first use."""
        with tracing:
            if name not in self._loops:
                self._loops[name] = make()
            return self._loops[name]


def accepts(known: Sequence[Inner], given: Sequence[Inner]) -> bool:
    """Return whether a trace for the first inner shapes accepts the second."""
    return all(
        size is None or size == other
        for mine, others in zip(known, given, strict=True)
        for size, other in zip(mine, others, strict=True)
    )


def _spec_of(output: Nest) -> TensorSpec:
    return tf.TensorSpec(output.shape, output.dtype) if isinstance(output, tf.Tensor) else output
