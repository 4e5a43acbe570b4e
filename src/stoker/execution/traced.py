"""The compiled predict and test steps of a model, kept on it and traced again when the model has changed.

Three functions a kind of input: one batch; many batches of resident rows in one call; many batches of a dataset in
one call. Row counts are left open in their signatures, so that no number of rows traces again (only a single row has
a function of its own: with one row as a constant the graph is a good deal shorter); another inner shape opens the
dimensions in which it differs. So the number of traces is bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from stoker.execution.staleness import PythonSide
from stoker.execution.structures import rebuild

_ATTRIBUTE = "_stoker_compiled"
_tracing = threading.RLock()

Step = Callable[[Any], Any]
Inner = tuple[int | None, ...]


class BatchFunction:
    """A step of one batch as a concrete function, and the inner shapes it was traced for."""

    def __init__(self, model: keras.Model, step: Step, skeleton: Any, specs: Sequence[tf.TensorSpec]) -> None:
        self.inner: tuple[Inner, ...] = tuple(tuple(spec.shape[1:]) for spec in specs)
        self.specs = list(specs)
        # XLA where Keras would use it: on the step.
        compiled = tf.function(step, jit_compile=True) if model.jit_compile else step

        def one_batch(*leaves: Any) -> Any:
            return compiled(rebuild(skeleton, iter(leaves)))

        function = tf.function(one_batch, input_signature=self.specs, autograph=False)
        self.call = function.get_concrete_function()
        self.outputs = tf.nest.map_structure(_spec_of, self.call.structured_outputs)
        self._loops: dict[str, Any] = {}
        self.batch_seconds: float | None = None  # what a batch took last, when many were run

    def joinable(self) -> bool:
        """Can the outputs of several batches be joined in the graph: dense, all but the rows known?"""
        return all(
            isinstance(spec, tf.TensorSpec)
            and spec.shape.rank is not None
            and (spec.shape.rank == 0 or spec.shape[1:].is_fully_defined())
            for spec in tf.nest.flatten(self.outputs)
        )

    def loop(self, name: str, make: Callable[[], Any]) -> Any:
        """The compiled loop around this step, made at its first use."""
        with _tracing:
            if name not in self._loops:
                self._loops[name] = make()
            return self._loops[name]

    def accepts(self, inner: tuple[Inner, ...]) -> bool:
        return all(
            known is None or known == size
            for mine, given in zip(self.inner, inner, strict=True)
            for known, size in zip(mine, given, strict=True)
        )


class Compiled:
    """What has been traced of one model."""

    def __init__(self, model: keras.Model) -> None:
        self.model = model
        self.python_side = PythonSide(model)
        self.functions: dict[Any, BatchFunction] = {}

    def batch_function(
        self,
        kind: str,
        step: Callable[[keras.Model], Step],
        skeleton: Any,
        leaves: Sequence[Any],
        rows: int | None = None,
    ) -> BatchFunction:
        """The function of one batch for inputs like these, traced if it has to be; `rows` fixes their number."""
        key = (kind, rows, skeleton, tuple([(tf.as_dtype(leaf.dtype), len(leaf.shape)) for leaf in leaves]))
        inner = tuple([tuple(leaf.shape[1:]) for leaf in leaves])
        found = self.functions.get(key)
        if found is not None and (found.inner == inner or found.accepts(inner)):
            return found
        with _tracing:
            if found is not None:
                inner = tuple(map(_widened, found.inner, inner))
            specs = [
                tf.TensorSpec([rows, *sizes], leaf.dtype) for sizes, leaf in zip(inner, leaves, strict=True)
            ]
            traced = BatchFunction(self.model, step(self.model), skeleton, specs)
            self.functions[key] = traced
            # Tracing builds what was not built yet.
            self.python_side = PythonSide(self.model)
        return traced


def compiled(model: keras.Model) -> Compiled:
    """What is traced of the model, empty if the model is not what it was."""
    kept: Compiled | None = model.__dict__.get(_ATTRIBUTE)
    if kept is not None and kept.model is model and kept.python_side.holds(model):
        return kept
    fresh = Compiled(model)
    # On the model itself, so that both go together; past Keras' and TensorFlow's tracking of attributes.
    model.__dict__[_ATTRIBUTE] = fresh
    return fresh


def _widened(known: Inner, given: Inner) -> Inner:
    return tuple(size if size == other else None for size, other in zip(known, given, strict=True))


def _spec_of(output: Any) -> Any:
    return tf.TensorSpec(output.shape, output.dtype) if isinstance(output, tf.Tensor) else output
