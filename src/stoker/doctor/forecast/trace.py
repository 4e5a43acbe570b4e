"""The allocations of a program's first steps, from the program's start, as one process hands them to another."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from stoker.doctor.attach.sites import shown_path
from stoker.doctor.memory.events import MemoryEvent
from stoker.doctor.memory.owners import Owner


class TracedAllocation(NamedTuple):
    """An allocation: what requested it, its size, and its owner (a number in `StepTrace.owners`)."""

    op: str
    region: str
    shape: str
    bytes: int
    owner: int


class TracedOwner(NamedTuple):
    """The owner of an allocation."""

    role: str
    layer: str
    file: str
    line: int


@dataclass(frozen=True)
class StepTrace:
    """Everything that happened on the device from the start of the program to the end of its first steps."""

    rows: int
    # The highest peak, as TensorFlow counted it.
    peak_bytes: int
    steps: int
    allocations: list[TracedAllocation]
    # The moves in order: `n` when allocation n is made, `~n` when it is freed.
    moves: list[int]
    owners: list[TracedOwner]
    # Keras' policy after the program's steps: "float32" or, for example, "mixed_float16".
    policy: str = "float32"
    # The class of the Keras optimizer; empty if there is none.
    optimizer: str = ""

    def to_json(self) -> str:
        """Return the trace as text."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> StepTrace:
        """Return the trace that `to_json` wrote."""
        values = json.loads(text)
        values["allocations"] = [TracedAllocation(*row) for row in values["allocations"]]
        values["owners"] = [TracedOwner(*row) for row in values["owners"]]
        return StepTrace(**values)


def trace_events(
    events: Iterable[MemoryEvent], owner_of: Callable[[MemoryEvent], Owner]
) -> tuple[list[TracedAllocation], list[int], list[TracedOwner]]:
    """Return allocations, moves and owners, from the events of a device in order of time."""
    allocations: list[TracedAllocation] = []
    moves: list[int] = []
    owners: dict[TracedOwner, int] = {}
    alive: dict[int, int] = {}
    for event in events:
        if event.is_allocation:
            owner = _traced(owner_of(event))
            number = owners.setdefault(owner, len(owners))
            alive[event.address] = len(allocations)
            moves.append(len(allocations))
            allocations.append(TracedAllocation(event.op, event.region, event.shape, event.requested, number))
        elif event.address in alive:
            moves.append(~alive.pop(event.address))
    return allocations, moves, list(owners)


def _traced(owner: Owner) -> TracedOwner:
    file, line, _ = owner.site or ("", 0, "")
    return TracedOwner(owner.role, owner.layer, shown_path(file) if file else "", line)
