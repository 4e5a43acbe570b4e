"""A recorded step: its ops, reads and feeds in order, its tensors, and its variables before and after.

This module is imported before the program starts, so it imports little, and never TensorFlow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from stoker.doctor.attach.sites import SiteKey
from stoker.doctor.experiments.marking import MOST_MARKS, MarkedStep
from stoker.tf_internals import recorded_ops

if TYPE_CHECKING:
    from stoker.tf_internals.recorded_ops import Attributes
    from stoker.tf_internals.types import ProtoMessage, Tensor


@dataclass(frozen=True)
class RecordedOp:
    """An eager op, or a call of a compiled function. Values are indices into `RecordedStep.values`."""

    name: str
    inputs: tuple[int, ...]
    attributes: Attributes
    outputs: tuple[int, ...]
    # The user's lines on the stack, innermost first.
    stack: tuple[SiteKey, ...]
    # Its place among the ops that TensorFlow reported; -1 for an op that was added later.
    place: int = -1
    # Whether all its attributes are known: a file does not hold those of datasets.
    is_whole: bool = True


@dataclass(frozen=True)
class RecordedRead:
    """A tensor's value went to Python or NumPy."""

    value: int
    stack: tuple[SiteKey, ...]


@dataclass(frozen=True)
class RecordedFeed:
    """Host data became a tensor; `convert` repeats the conversion."""

    value: int
    convert: Callable[[], Tensor]
    stack: tuple[SiteKey, ...]
    # Whether the data's type is NumPy's or built in, so that converting it runs none of the program's code.
    is_plain: bool = True


@dataclass(frozen=True)
class Conversion:
    """Converts host data to a tensor again."""

    original: Callable[..., Tensor]
    value: object
    context: object
    dtype: object

    def __call__(self) -> Tensor:
        return self.original(self.value, self.context, self.dtype)


Event: TypeAlias = "RecordedOp | RecordedRead | RecordedFeed"


@dataclass
class RecordedStep:
    """One step of a source, as it ran."""

    source: object
    events: list[Event] = field(default_factory=list)
    # Every tensor of the step, and the tensors' numbers by id. All tensors are kept alive, so ids are unique.
    values: list[Tensor] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    # The handles of variables, with the values from before the step and from after it.
    before: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    after: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    # The compiled functions that the step calls. The program may drop them before it ends.
    functions: dict[str, ProtoMessage] = field(default_factory=dict)
    nbytes: int = 0
    # The tensors that the program still held after the step: it may use them in the next step.
    held: frozenset[int] = frozenset()
    # The number of ops that TensorFlow reported; and steps like this one, at their own speed.
    count: int = 0
    marks: deque[MarkedStep] = field(default_factory=lambda: deque(maxlen=MOST_MARKS))
    # Whether the program continues after the experiments.
    goes_on: bool = False
    # The numbers of handles to things that a file does not hold.
    lost: frozenset[int] = frozenset()

    def ops(self) -> list[RecordedOp]:
        """Return the ops in the order in which they ran."""
        return [event for event in self.events if isinstance(event, RecordedOp)]

    def handles(self) -> list[Tensor]:
        """Return the resources that its ops take, and the handles of the variables found before."""
        given = [tensor for tensor in self.values if tensor.dtype.name == "resource"]
        return list({id(handle): handle for handle in [*given, *(h for h, _ in self.before)]}.values())

    def number(self, tensor: Tensor) -> int:
        """Return the number of a tensor, and keep the tensor alive from now on."""
        found = self.numbers.get(id(tensor))
        if found is None:
            found = self.numbers[id(tensor)] = len(self.values)
            self.values.append(tensor)
            self.nbytes += tensor_bytes(tensor)
        return found


def is_handle(tensor: Tensor) -> bool:
    """Return whether a tensor is a handle, not data."""
    return tensor.dtype.name in ("resource", "variant")


def tensor_bytes(tensor: Tensor) -> int:
    """Return a tensor's bytes in memory; 0 for a handle."""
    if is_handle(tensor):
        return 0
    return int(tensor.dtype.size) * int(tensor.shape.num_elements() or 0)


def read_variables(handles: Iterable[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Return the variables among these resources, each with its value."""
    found = []
    for handle in handles:
        dtype = recorded_ops.variable_dtype(handle)
        if dtype is not None:
            (value,) = recorded_ops.run_op("ReadVariableOp", [handle], ("dtype", dtype), 1)
            found.append((handle, value))
    return found
