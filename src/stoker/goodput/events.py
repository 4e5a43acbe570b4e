"""The events that a job and its workers note, one line of JSON each; `say` names the type of the event.

`at` is in nanoseconds of the machine's monotonic clock, which nobody can set. The first event of each file relates that
clock to the wall clock and names the machine and its boot, so that files of several machines can be compared.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import ClassVar, get_args

_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class NotedEvent:
    """The fields that all events have."""

    say: ClassVar[str] = ""
    at: int


@dataclass(frozen=True)
class ClockTied(NotedEvent):
    """The first event of a file: both clocks at one moment, and the boot in which the monotonic clock is valid."""

    say: ClassVar[str] = "clock"
    wall: int
    boot: str

    @classmethod
    def now(cls) -> ClockTied:
        """Read both clocks now."""
        try:
            boot = _BOOT.read_text(encoding="ascii").strip()
        except OSError:
            boot = ""
        return cls(time.monotonic_ns(), time.time_ns(), boot)


@dataclass(frozen=True)
class PhaseBegun(NotedEvent):
    """A worker begins to do something else; `phase` is an account or `training`, `line` is the user's line."""

    say: ClassVar[str] = "phase"
    phase: str
    line: str = ""


@dataclass(frozen=True)
class RunResumed(NotedEvent):
    """A worker trains from this step on, 0 for a new run. `run` keeps its name across restarts."""

    say: ClassVar[str] = "resumed"
    run: str
    step: int


@dataclass(frozen=True)
class StepsDone(NotedEvent):
    """Steps `first` + 1 to `last`, done since the event before, and their seconds; the rest of the time is the phase's.

    `cold` means that the call traced or compiled something and so took longer than its steps.
    """

    say: ClassVar[str] = "steps"
    run: str
    first: int
    last: int
    steps_s: float
    data_s: float = 0.0
    peers_s: float = 0.0
    cold: bool = False


@dataclass(frozen=True)
class CheckpointCounted(NotedEvent):
    """A checkpoint of this step is complete: a restart resumes from it."""

    say: ClassVar[str] = "counted"
    run: str
    step: int


@dataclass(frozen=True)
class RoundBegun(NotedEvent):
    """All workers are being started; the job has restarted `number` times so far."""

    say: ClassVar[str] = "round"
    number: int
    ranks: list[int]


@dataclass(frozen=True)
class WorkerEnded(NotedEvent):
    """A worker's process has ended."""

    say: ClassVar[str] = "ended"
    number: int
    rank: int


@dataclass(frozen=True)
class RoundOver(NotedEvent):
    """No worker is left; `line` says why the round ended, as `stoker launch` prints it."""

    say: ClassVar[str] = "over"
    number: int
    kind: str
    line: str


@dataclass(frozen=True)
class JobEnded(NotedEvent):
    """The job is over. Unless it is done, the steps after the last checkpoint are lost."""

    say: ClassVar[str] = "end"
    done: bool


WorkerEvent = PhaseBegun | RunResumed | StepsDone | CheckpointCounted
JobEvent = RoundBegun | WorkerEnded | RoundOver | JobEnded
Event = ClockTied | WorkerEvent | JobEvent
_KINDS: dict[str, type[Event]] = {
    kind.say: kind for kind in (ClockTied, *get_args(WorkerEvent), *get_args(JobEvent))
}


def encode(event: Event) -> bytes:
    """Encode an event as a line."""
    return json.dumps({"say": event.say, **asdict(event)}, separators=(",", ":")).encode("utf-8") + b"\n"


def decode(text: bytes) -> list[Event]:
    """Read the events of a file, without incomplete lines and events that this version does not know."""
    return [event for line in text.split(b"\n")[:-1] if (event := _decode_line(line)) is not None]


def _decode_line(line: bytes) -> Event | None:
    try:
        values = json.loads(line)
        kind = _KINDS[values.pop("say")]
        known = {field.name for field in fields(kind)}
        return kind(**{name: value for name, value in values.items() if name in known})
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
