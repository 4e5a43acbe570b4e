"""Many batches in one compiled call: over rows on the device, or over a dataset's iterator.

What the batches leave behind is an `Outcome`: the outputs of all of them joined, or the logs of the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import tensorflow as tf

from stoker.tf_internals.types import DatasetIterator, Nest, Tensor
from stoker.train.execution.batch_function import BatchFunction
from stoker.train.inference.streams import element_leaves

State = list[Tensor]  # of TensorArrays, inside the loop


class Outcome(Protocol):
    """Folds the outputs of batch after batch inside the graph."""

    def start(self, count: Tensor | None) -> State:
        """Before the first of `count` batches; None where the data may end sooner."""

    def add(self, index: Tensor, outputs: Nest, state: State) -> State:
        """After batch number `index`."""

    def finish(self, state: State) -> Nest:
        """After the last."""


class Joined:
    """All outputs, the rows of one batch after those of another; what has no rows is stacked."""

    def __init__(self, function: BatchFunction) -> None:
        self._structure = function.outputs
        self._specs = tf.nest.flatten(function.outputs)

    def start(self, count: Tensor | None) -> State:
        return [
            tf.TensorArray(
                spec.dtype,
                size=0 if count is None else count,
                dynamic_size=count is None,
                element_shape=spec.shape,
                infer_shape=False,
            )
            for spec in self._specs
        ]

    def add(self, index: Tensor, outputs: Nest, state: State) -> State:
        flat = tf.nest.flatten(outputs)
        return [array.write(index, value) for array, value in zip(state, flat, strict=True)]

    def finish(self, state: State) -> Nest:
        flat = [
            array.concat() if spec.shape.rank else array.stack()
            for array, spec in zip(state, self._specs, strict=True)
        ]
        return tf.nest.pack_sequence_as(self._structure, flat)


def loop_over_rows(function: BatchFunction, outcome: Outcome) -> Callable[..., Nest]:
    """`loop(batch, count, *leaves)`: `count` full batches of `batch` rows."""
    size = tf.TensorSpec([], tf.int32)

    def loop(batch: Tensor, count: Tensor, *leaves: Tensor) -> Nest:
        def body(index: Tensor, state: State) -> tuple[Nest, State]:
            first = index * batch
            outputs = function.call(*[leaf[first : first + batch] for leaf in leaves])
            return index + 1, outcome.add(index, outputs, state)

        _, state = tf.while_loop(lambda index, _: index < count, body, (0, outcome.start(count)))
        return outcome.finish(state)

    compiled = tf.function(loop, input_signature=[size, size, *function.specs], autograph=False)
    concrete: Callable[..., Nest] = compiled.get_concrete_function()
    return concrete


def loop_over_stream(function: BatchFunction, outcome: Outcome) -> Callable[..., Nest]:
    """`loop(iterator, count)`: up to `count` batches; how many there were, and the outcome."""

    def loop(iterator: DatasetIterator, count: Tensor) -> Nest:
        def more(index: Tensor, element: Nest, _: State) -> Tensor:
            return tf.logical_and(index < count, element.has_value())

        def body(index: Tensor, element: Nest, state: State) -> tuple[Nest, Nest, State]:
            outputs = function.call(*element_leaves(element.get_value()))
            # The element behind the last wanted one is left to whoever reads next.
            following = tf.cond(index + 1 < count, iterator.get_next_as_optional, lambda: element)
            return index + 1, following, outcome.add(index, outputs, state)

        first = iterator.get_next_as_optional()
        ran, _, state = tf.while_loop(more, body, (0, first, outcome.start(None)))
        return ran, outcome.finish(state)

    compiled: Callable[..., Nest] = tf.function(loop, autograph=False)
    return compiled
