"""A recorded step: its ops, reads and feeds in their order, its tensors, and the variables it began with and left.

This module is imported before the program starts, so it imports little and TensorFlow not at all.
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
    """An eager op, or a call of a compiled function. Values are numbers into `RecordedStep.values`."""

    name: str
    inputs: tuple[int, ...]
    attributes: Attributes
    outputs: tuple[int, ...]
    # The user's lines on the stack, innermost first.
    stack: tuple[SiteKey, ...]
    # Its place among the ops that TensorFlow told of; -1 for one that was put in later.
    place: int = -1
    # Whether all its attributes are there: a file does not hold those of datasets.
    is_whole: bool = True


@dataclass(frozen=True)
class RecordedRead:
    """A tensor's value went to Python or NumPy."""

    value: int
    stack: tuple[SiteKey, ...]


@dataclass(frozen=True)
class RecordedFeed:
    """Host data became a tensor; `convert` does it again."""

    value: int
    convert: Callable[[], Tensor]
    stack: tuple[SiteKey, ...]
    # Whether the data is NumPy's or Python's own, so that converting it runs nothing of the program's.
    is_plain: bool = True


@dataclass(frozen=True)
class Conversion:
    """Makes a tensor of host data again."""

    original: Callable[..., Tensor]
    value: object
    context: object
    dtype: object

    def __call__(self) -> Tensor:
        return self.original(self.value, self.context, self.dtype)


Event: TypeAlias = "RecordedOp | RecordedRead | RecordedFeed"


@dataclass
class RecordedStep:
    """One step of a source, as it was."""

    source: object
    events: list[Event] = field(default_factory=list)
    # Every tensor of the step, and its number by its id: all are alive, so ids are unique.
    values: list[Tensor] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    # The handles of variables, with the values they had when the step began and when it had ended.
    before: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    after: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    # Compiled functions that it calls: the program may drop them before it ends.
    functions: dict[str, ProtoMessage] = field(default_factory=dict)
    nbytes: int = 0
    # The tensors that the program still held when the step had ended: it may use them in the next one.
    held: frozenset[int] = frozenset()
    # How many ops TensorFlow told of, and steps like this one at their own speed.
    count: int = 0
    marks: deque[MarkedStep] = field(default_factory=lambda: deque(maxlen=MOST_MARKS))
    # Whether the program goes on after the experiments.
    goes_on: bool = False
    # Handles, by number, of what a file does not hold.
    lost: frozenset[int] = frozenset()

    def ops(self) -> list[RecordedOp]:
        """The ops in the order they ran."""
        return [event for event in self.events if isinstance(event, RecordedOp)]

    def handles(self) -> list[Tensor]:
        """The resources that its ops are given, and those of the variables that were found before."""
        given = [tensor for tensor in self.values if tensor.dtype.name == "resource"]
        return list({id(handle): handle for handle in [*given, *(h for h, _ in self.before)]}.values())

    def number(self, tensor: Tensor) -> int:
        """The number of a tensor, which is kept alive from now on."""
        found = self.numbers.get(id(tensor))
        if found is None:
            found = self.numbers[id(tensor)] = len(self.values)
            self.values.append(tensor)
            self.nbytes += tensor_bytes(tensor)
        return found


def is_handle(tensor: Tensor) -> bool:
    """Whether a tensor is the handle of something, not data."""
    return tensor.dtype.name in ("resource", "variant")


def tensor_bytes(tensor: Tensor) -> int:
    """What a tensor takes in memory; nothing for a handle."""
    if is_handle(tensor):
        return 0
    return int(tensor.dtype.size) * int(tensor.shape.num_elements() or 0)


def read_variables(handles: Iterable[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """The variables among these resources, each with its value."""
    found = []
    for handle in handles:
        dtype = recorded_ops.variable_type(handle)
        if dtype is not None:
            (value,) = recorded_ops.run_op("ReadVariableOp", [handle], ("dtype", dtype), 1)
            found.append((handle, value))
    return found
