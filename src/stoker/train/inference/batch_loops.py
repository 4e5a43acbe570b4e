"""Many batches in one compiled call: over rows on the device, or over a dataset's iterator.

What the batches leave behind is an `Outcome`: the outputs of all of them joined, or the logs of the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import tensorflow as tf

from stoker.train.execution.batch_function import BatchFunction
from stoker.train.inference.streams import element_leaves

State = list[Any]


class Outcome(Protocol):
    """Folds the outputs of batch after batch inside the graph."""

    def start(self, count: Any) -> State:
        """Before the first of `count` batches; None where the data may end sooner."""

    def add(self, index: Any, outputs: Any, state: State) -> State:
        """After batch number `index`."""

    def finish(self, state: State) -> Any:
        """After the last."""


class Joined:
    """All outputs, the rows of one batch after those of another; what has no rows is stacked."""

    def __init__(self, function: BatchFunction) -> None:
        self._structure = function.outputs
        self._specs = tf.nest.flatten(function.outputs)

    def start(self, count: Any) -> State:
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

    def add(self, index: Any, outputs: Any, state: State) -> State:
        flat = tf.nest.flatten(outputs)
        return [array.write(index, value) for array, value in zip(state, flat, strict=True)]

    def finish(self, state: State) -> Any:
        flat = [
            array.concat() if spec.shape.rank else array.stack()
            for array, spec in zip(state, self._specs, strict=True)
        ]
        return tf.nest.pack_sequence_as(self._structure, flat)


def loop_over_rows(function: BatchFunction, outcome: Outcome) -> Callable[..., Any]:
    """`loop(batch, count, *leaves)`: `count` full batches of `batch` rows."""
    size = tf.TensorSpec([], tf.int32)

    def loop(batch: Any, count: Any, *leaves: Any) -> Any:
        def body(index: Any, state: State) -> tuple[Any, State]:
            first = index * batch
            outputs = function.call(*[leaf[first : first + batch] for leaf in leaves])
            return index + 1, outcome.add(index, outputs, state)

        _, state = tf.while_loop(lambda index, _: index < count, body, (0, outcome.start(count)))
        return outcome.finish(state)

    compiled = tf.function(loop, input_signature=[size, size, *function.specs], autograph=False)
    return compiled.get_concrete_function()  # type: ignore[no-any-return]


def loop_over_stream(function: BatchFunction, outcome: Outcome) -> Callable[..., Any]:
    """`loop(iterator, count)`: up to `count` batches; how many there were, and the outcome."""

    def loop(iterator: Any, count: Any) -> Any:
        def more(index: Any, element: Any, _: State) -> Any:
            return tf.logical_and(index < count, element.has_value())

        def body(index: Any, element: Any, state: State) -> tuple[Any, Any, State]:
            outputs = function.call(*element_leaves(element.get_value()))
            # The element behind the last wanted one is left to whoever reads next.
            following = tf.cond(index + 1 < count, iterator.get_next_as_optional, lambda: element)
            return index + 1, following, outcome.add(index, outputs, state)

        first = iterator.get_next_as_optional()
        ran, _, state = tf.while_loop(more, body, (0, first, outcome.start(None)))
        return ran, outcome.finish(state)

    return tf.function(loop, autograph=False)  # type: ignore[no-any-return]
