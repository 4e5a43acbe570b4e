"""Steps of Keras' `fit` that run op by op: which of their ops one call would run, and that call as Keras makes it.

What `fit` does between two such calls stays, however the step is compiled: it asks for the next turn, calls the
callbacks, and takes the logs out of the call's results. So the repaired step is only what Keras would compile. It is
called as Keras calls it, with the iterator that the batch comes from.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.doctor.experiments.rebuilding import Rebuilt, is_input
from stoker.doctor.experiments.recorded_step import RecordedOp, RecordedStep

# Keras wraps the logs of a step in an optional. That is the last op in the function that Keras compiles.
_LAST_OF_CALL = "OptionalFromValue"


def list_ops_of_call(step: RecordedStep) -> list[RecordedOp]:
    """Return the ops that `fit` would run in one compiled call, the batch's fetch first; none for another step."""
    ops = step.ops()
    first = next((number for number, op in enumerate(ops) if is_input(op)), len(ops))
    ends = [number for number, op in enumerate(ops) if op.name == _LAST_OF_CALL]
    return ops[first : ends[-1] + 1] if ends else []


def call_with_iterator(step: RecordedStep, fetch: RecordedOp, rebuilt: Rebuilt) -> Rebuilt:
    """Return the rebuilt call with an iterator over the recorded batch as its argument, in place of the batch."""
    import tensorflow as tf

    batch = [number for number in rebuilt.taken if number in fetch.outputs]
    if not batch:
        return rebuilt
    data = tf.data.Dataset.from_tensors(tuple(step.values[number] for number in batch)).repeat()
    others = tuple(step.values[number] for number in rebuilt.taken if number not in batch)

    def fetch_and_run(iterator: tf.data.Iterator, *rest: tf.Tensor) -> Sequence[tf.Tensor]:
        fetched = dict(zip(batch, next(iterator), strict=True))
        left = iter(rest)
        given = [fetched[number] if number in fetched else next(left) for number in rebuilt.taken]
        outputs: Sequence[tf.Tensor] = rebuilt.function(*given)
        return outputs

    function = tf.function(fetch_and_run, autograph=False)
    return Rebuilt(function, (iter(data), *others), rebuilt.outputs, rebuilt.taken)
