"""Calls of the program's own compiled functions, made again the way a program calls a `tf.function`."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.doctor.experiments.checking import check_rebuilt
from stoker.doctor.experiments.rebuilding import Rebuilt, check_repeatable, holds_random_op
from stoker.doctor.experiments.recorded_step import RecordedOp, RecordedStep, is_handle
from stoker.tf_internals import recorded_ops
from stoker.tf_internals.types import Tensor


def rebuild_call(step: RecordedStep, call: RecordedOp, fitted: Sequence[Tensor] | None = None) -> Rebuilt:
    """A recorded call: its data are arguments, handles are captured. `fitted` are other inputs for it."""
    inputs = [step.values[number] for number in call.inputs] if fitted is None else fitted
    return compile_call(step, call, call.name, inputs)


def compile_call(step: RecordedStep, call: RecordedOp, name: str, inputs: Sequence[Tensor]) -> Rebuilt:
    """A call of the function `name`, which gives what the function of a recorded call gives."""
    import tensorflow as tf

    outputs = [step.values[number] for number in call.outputs]

    def body(*data: Tensor) -> list[Tensor]:
        left = iter(data)
        given = [tensor if is_handle(tensor) else next(left) for tensor in inputs]
        return recorded_ops.add_op(name, given, (), outputs)

    data = tuple(tensor for tensor in inputs if not is_handle(tensor))
    return Rebuilt(tf.function(body, autograph=False), data, call.outputs)


def check_call(step: RecordedStep, call: RecordedOp, rebuilt: Rebuilt) -> None:
    """See that a call can be made again, and gives what it gave; of random values there is no telling.

    Raises:
        CannotRebuildStep: it cannot, or it gives something else.
    """
    check_repeatable(call, step)
    if not holds_random_op(call, step.functions):
        check_rebuilt(step, [call], rebuilt)


def fit_to_shapes(inputs: Sequence[Tensor], shapes: recorded_ops.Shapes) -> list[Tensor]:
    """The inputs with each dimension cut off or repeated; what has no known shape stays as it is."""
    import tensorflow as tf

    fitted = []
    for tensor, shape in zip(inputs, shapes, strict=True):
        if shape is not None and not is_handle(tensor) and tensor.shape.rank == len(shape):
            for axis, size in enumerate(shape):
                if 0 < int(tensor.shape[axis]) != size:
                    tensor = tf.gather(tensor, tf.range(size) % int(tensor.shape[axis]), axis=axis)
        fitted.append(tensor)
    return fitted
