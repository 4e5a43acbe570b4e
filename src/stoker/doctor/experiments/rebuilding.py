"""A recorded step, rebuilt op by op as it ran, or as the graph that a repair would make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stoker.doctor.experiments.recorded_step import (
    Event,
    RecordedOp,
    RecordedRead,
    RecordedStep,
    is_handle,
    tensor_bytes,
)
from stoker.tf_internals import graphs, recorded_ops
from stoker.tf_internals.iterators import NEXT_ELEMENT_OPS
from stoker.tf_internals.types import CompiledFunction, ProtoMessage, Tensor

# Scalars, axes and shapes, which Python held, are constants of a graph. All other data is an argument.
_MAX_CONSTANT_BYTES = 64
_MAX_SHAPE_BYTES = 1024
_READS = frozenset(
    {"ReadVariableOp", "VarIsInitializedOp", "VariableShape", "ResourceGather", "ResourceGatherNd"}
)
_CALLS = frozenset({"StatefulPartitionedCall", "If", "While", "Case"})
_RANDOM = frozenset(
    {
        *("RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "RandomShuffle"),
        *("RandomGamma", "RandomPoissonV2", "Multinomial", "ParameterizedTruncatedNormal"),
    }
)
# Stateful ops that change only variables, and so can be run again.
_REPEATABLE = (
    _READS
    | _CALLS
    | _RANDOM
    | {
        *("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "DisableCopyOnRead", "Assert"),
        *("ResourceStridedSliceAssign", "LookupTableFindV2", "LookupTableSizeV2", "RngReadAndSkip"),
    }
)
_REPEATABLE_FAMILIES = ("ResourceApply", "ResourceSparseApply", "ResourceScatter")
# Types whose tensors share their memory with NumPy.
_PLAIN = frozenset({"float16", "float32", "float64", "int32", "int64"})


class CannotRebuildStep(Exception):
    """The step holds something that must not, or cannot, be run again. The message is one clause."""


def is_input(op: RecordedOp) -> bool:
    """Return whether the op takes the next element of a dataset."""
    return op.name in NEXT_ELEMENT_OPS


def is_random(op: RecordedOp) -> bool:
    """Return whether the op gives a different result each time."""
    return op.name in _RANDOM


def check_repeatable(op: RecordedOp, step: RecordedStep) -> None:
    """Check that running the op again has no effect that anybody could notice.

    A compiled function keeps the state of its random numbers where it cannot be restored. If the program continues, its
    next random numbers would be different. Random eager ops need not run: see `list_repeatable`.

    Raises:
        CannotRebuildStep: running the op again might have an effect.
    """
    if not (op.is_whole and step.lost.isdisjoint(op.inputs)):
        raise CannotRebuildStep("the file does not hold what the step uses")
    for name in _ops_inside(op, step.functions):
        if not _is_repeatable(name) or (step.goes_on and name in _RANDOM and op.name in step.functions):
            raise CannotRebuildStep(f"the step runs {name}")


def list_repeatable(step: RecordedStep, ops: Sequence[RecordedOp]) -> list[RecordedOp]:
    """Return the ops that may run again one by one. If the program continues, recorded values replace random ops."""
    return [op for op in ops if not (step.goes_on and is_random(op))]


def holds_random_op(op: RecordedOp, functions: dict[str, ProtoMessage]) -> bool:
    """Return whether an op, or an op in its compiled function, gives a different result each time."""
    return any(name in _RANDOM for name in _ops_inside(op, functions))


def _ops_inside(op: RecordedOp, functions: dict[str, ProtoMessage]) -> Iterator[str]:
    """Yield the types of all ops that a call of a compiled function may run; for another op, its own type."""
    pending, seen = [op.name], set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in functions:
            pending += [node.op for node in functions[name].node_def]
            pending += recorded_ops.called_functions(functions[name])
        else:
            yield name


def _is_repeatable(name: str) -> bool:
    definition = graphs.definition(name)
    if definition is None or name in graphs.PYTHON_OPS:
        return False
    return not definition.is_stateful or name in _REPEATABLE or name.startswith(_REPEATABLE_FAMILIES)


def add_hidden_reads(step: RecordedStep) -> None:
    """Add the reads that no watcher sees: an op that takes a variable itself reads the variable along the way.

    What such an op read shares the variable's memory, with the value from before the step or from after it. Do not call
    this while probes are attached: they would take its reads for the program's.
    """
    variables = {_memory_of(value): handle for handle, value in [*step.after, *step.before]}
    variables.pop(None, None)
    known = {number for op in step.ops() for number in op.outputs}
    events: list[Event] = []
    for event in step.events:
        for number in event.inputs if isinstance(event, RecordedOp) else ():
            handle = variables.get(_memory_of(step.values[number])) if number not in known else None
            known.add(number)
            if handle is not None:
                dtype = ("dtype", step.values[number].dtype)
                events.append(
                    RecordedOp("ReadVariableOp", (step.number(handle),), dtype, (number,), event.stack)
                )
        events.append(event)
    step.events = events


def _memory_of(value: Tensor) -> tuple[int, str, tuple[int, ...]] | None:
    """Return a value's address, type and shape; None if it has no memory that NumPy can share."""
    if value.dtype.name not in _PLAIN or not tensor_bytes(value):
        return None
    array = np.asarray(value)
    return array.__array_interface__["data"][0], value.dtype.name, array.shape


def replay(step: RecordedStep, ops: Sequence[RecordedOp]) -> Callable[[], None]:
    """Return a function that runs these ops one by one, as they ran."""
    made = {number for op in ops for number in op.outputs}
    outside = {n: step.values[n] for op in ops for n in op.inputs if n not in made}

    def run() -> None:
        values = dict(outside)
        for op in ops:
            given = [values[number] for number in op.inputs]
            outputs = recorded_ops.run_op(op.name, given, op.attributes, len(op.outputs))
            values.update(zip(op.outputs, outputs, strict=True))

    return run


@dataclass(frozen=True)
class Rebuilt:
    """Some ops of a step as one compiled function: its arguments, and which of the step's values it returns."""

    function: CompiledFunction
    arguments: tuple[Tensor, ...]
    outputs: tuple[int, ...]
    # The numbers of the arguments among the step's values; empty if the arguments are not such values.
    taken: tuple[int, ...] = ()

    def __call__(self) -> Sequence[Tensor]:
        outputs: Sequence[Tensor] = self.function(*self.arguments)
        return outputs


def rebuild(step: RecordedStep, ops: Sequence[RecordedOp], frozen: bool = False) -> Rebuilt:
    """Return these ops as one compiled function.

    Inputs from elsewhere become arguments, or constants if they are small. Unused results are pruned. `frozen` replaces
    random values by the recorded ones, so that results can be compared.
    """
    import tensorflow as tf

    live = [op for op in ops if not (frozen and is_random(op))]
    made = {number for op in live for number in op.outputs}
    outside = list(dict.fromkeys(n for op in live for n in op.inputs if n not in made))
    arguments = [n for n in outside if not _is_constant(step.values[n])]
    outputs = _used_elsewhere(step, live)

    def body(*given: Tensor) -> list[Tensor]:
        values = dict(zip(arguments, given, strict=True))
        for number in outside:
            if number not in values:
                values[number] = _constant(step.values[number])
        _Tracer(step, values).add(live)
        return [tf.identity(values[number]) for number in outputs]

    function = tf.function(body, autograph=False)
    return Rebuilt(function, tuple(step.values[n] for n in arguments), tuple(outputs), tuple(arguments))


def rebuild_as_loop(step: RecordedStep, ops: Sequence[RecordedOp], turns: int) -> Rebuilt:
    """Return a call that runs these ops `turns` times. Data passes from turn to turn: nothing is computed only once."""
    import tensorflow as tf

    made = {number for op in ops for number in op.outputs}
    outside = list(dict.fromkeys(n for op in ops for n in op.inputs if n not in made))
    data = [n for n in outside if not is_handle(step.values[n])]
    outputs = _used_elsewhere(step, ops)

    def body(
        turn: Tensor, given: list[Tensor], last: list[Tensor]
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        values = {n: step.values[n] for n in outside} | dict(zip(data, given, strict=True))
        _Tracer(step, values).add(ops)
        for number in outputs:
            values[number].set_shape(step.values[number].shape)
        return turn + 1, given, [values[number] for number in outputs]

    def run(limit: Tensor, *given: Tensor) -> list[Tensor]:
        empty = [tf.zeros_like(step.values[number]) for number in outputs]
        _, _, last = tf.while_loop(lambda turn, *_: turn < limit, body, (tf.constant(0), list(given), empty))
        return list(last)

    function = tf.function(run, autograph=False)
    arguments = (tf.constant(turns), *(step.values[n] for n in data))
    return Rebuilt(function, arguments, tuple(outputs))


def _is_constant(value: Tensor) -> bool:
    size = tensor_bytes(value)
    return size <= _MAX_CONSTANT_BYTES or (size <= _MAX_SHAPE_BYTES and value.dtype.name == "int32")


def _constant(value: Tensor) -> Tensor:
    """Return a value as a constant of the graph. A handle is returned unchanged, and is captured."""
    import tensorflow as tf

    return value if is_handle(value) else tf.constant(value.numpy(), value.dtype)


def _used_elsewhere(step: RecordedStep, ops: Sequence[RecordedOp]) -> list[int]:
    """Return the values of these ops that Python read, that other ops of the step took, or that the next step may use.

    A value that no op of the step took, and that the program still held after the step, may be for the next step.
    """
    own = {id(op) for op in ops}
    made = {number for op in ops for number in op.outputs}
    used: dict[int, None] = {}
    taken: set[int] = set()
    for event in step.events:
        if isinstance(event, RecordedRead):
            used[event.value] = None
        elif isinstance(event, RecordedOp):
            taken.update(event.inputs)
            if id(event) not in own:
                used.update(dict.fromkeys(event.inputs))
    used.update(dict.fromkeys(sorted(step.held - taken)))
    return [number for number in used if number in made]


class _Tracer:
    """Adds recorded ops to the graph being traced; `values` are the graph's tensors by number."""

    def __init__(self, step: RecordedStep, values: dict[int, Tensor]) -> None:
        self._step = step
        self._values = values
        # The last read of each variable. A variable is read once until it is written.
        self._reads: dict[int, Tensor] = {}

    def add(self, ops: Sequence[RecordedOp]) -> None:
        for op in ops:
            for number, tensor in zip(op.outputs, self._add(op), strict=True):
                self._values[number] = tensor

    def _add(self, op: RecordedOp) -> list[Tensor]:
        handles = [n for n in op.inputs if self._step.values[n].dtype.name == "resource"]
        if op.name == "ReadVariableOp" and handles[0] in self._reads:
            return [self._reads[handles[0]]]
        given = [self._values[number] for number in op.inputs]
        recorded = [self._step.values[number] for number in op.outputs]
        made = recorded_ops.add_op(op.name, given, op.attributes, recorded)
        if op.name == "ReadVariableOp":
            self._reads[handles[0]] = made[0]
        elif op.name not in _READS:
            for handle in handles:
                self._reads.pop(handle, None)
        return made
