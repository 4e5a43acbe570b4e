"""The events of a job on one clock: seconds since the job began.

Within one boot of a machine, all processes share one monotonic clock, which nobody can set. Files from other machines
are compared by their wall clocks. If a wall clock is off, the events are moved into the round that they belong to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from stoker.errors import UsageError
from stoker.goodput.diary import EVENTS, SUFFIX
from stoker.goodput.events import (
    ClockTied,
    Event,
    JobEnded,
    RoundBegun,
    RoundOver,
    WorkerEnded,
    WorkerEvent,
    decode,
)

_WORKER = re.compile(rf"worker-(\d+)-(\d+){re.escape(SUFFIX)}")


@dataclass(frozen=True)
class WorkerHistory:
    """The events of one worker's process; `began` is its first event, `ended` is None if nobody saw its end."""

    round: int
    rank: int
    began: int
    events: list[WorkerEvent] = field(default_factory=list)
    ended: int | None = None

    @property
    def last(self) -> int:
        """The time of the worker's last event."""
        return max((self.began, *(event.at for event in self.events)))

    def move(self, by: int) -> WorkerHistory:
        """Return the same history, this many nanoseconds later."""
        events = [replace(event, at=event.at + by) for event in self.events]
        return replace(self, began=self.began + by, events=events)


@dataclass(frozen=True)
class RoundHistory:
    """One start of all workers; `over` is None if the round still runs, or if nobody saw its end."""

    number: int
    ranks: list[int]
    began: int
    over: int | None = None
    kind: str = ""
    line: str = ""


@dataclass(frozen=True)
class JobHistory:
    """Everything known about a job. Times are nanoseconds of one clock."""

    began: int
    rounds: list[RoundHistory]
    workers: list[WorkerHistory]
    ended: int | None = None
    done: bool = False

    @property
    def last(self) -> int:
        """The time of the last event."""
        seen = [self.began, *(one.over or one.began for one in self.rounds)]
        return max(seen + [one.last for one in self.workers])


def find_job(jobs: Path, name: str, *, exactly: bool = False) -> Path | None:
    """Return the directory of the job with this id, or of the only one whose id begins so; None if none has events."""
    whole = [path.parent for path in jobs.glob(f"*/{EVENTS}") if path.parent.name == name]
    if whole or exactly:
        return whole[0] if whole else None
    found = [path.parent for path in jobs.glob(f"*/{EVENTS}") if path.parent.name.startswith(name)]
    return found[0] if len(found) == 1 else None


def read_history(directory: Path) -> JobHistory:
    """Read the event files of a job's directory.

    Raises:
        UsageError: there are no event files, or they are damaged.
    """
    files = {path.name: path.read_bytes() for path in sorted((directory / EVENTS).glob(f"*{SUFFIX}"))}
    return build_history(files, directory.name)


def build_history(files: dict[str, bytes], job: str) -> JobHistory:
    """Put the events of all files on one clock; `files` maps names to contents.

    Raises:
        UsageError: `stoker launch` itself wrote none of the files.
    """
    launched, noted = [], []
    for name, content in files.items():
        events = decode(content)
        if not events or not isinstance(events[0], ClockTied):
            continue
        match = _WORKER.fullmatch(name)
        if match is None:
            launched.append(events)
        else:
            noted.append((int(match[1]), int(match[2]), events))
    if not launched:
        raise UsageError(f"the job {job} has no events: its files are missing or damaged")
    reference = min((events[0] for events in launched if isinstance(events[0], ClockTied)), key=_wall_of)
    job_events = [event for events in launched for event in _convert(events, reference)]
    rounds = _join_rounds(job_events)
    ends = {(one.number, one.rank): one.at for one in job_events if isinstance(one, WorkerEnded)}
    workers = []
    for number, rank, events in noted:
        converted = _convert(events, reference)
        rest = [event for event in converted if isinstance(event, WorkerEvent)]
        worker = WorkerHistory(number, rank, converted[0].at, rest, ends.get((number, rank)))
        round_of = next((one for one in rounds if one.number == number), None)
        if round_of is not None:
            workers.append(_move_into(worker, round_of))
    over = [one for one in job_events if isinstance(one, JobEnded)]
    # If a scheduler starts every worker by itself, a job has as many ends as workers.
    last = max(over, key=lambda one: one.at, default=None)
    is_open = any(one.over is None for one in rounds)
    return JobHistory(
        began=min(event.at for event in job_events),
        rounds=rounds,
        workers=workers,
        ended=None if last is None or is_open else last.at,
        done=bool(over) and all(one.done for one in over if one.at >= rounds[-1].began) if rounds else False,
    )


def _wall_of(tied: ClockTied) -> int:
    return tied.wall


def _convert(events: list[Event], reference: ClockTied) -> list[Event]:
    """Return the events with their times on the reference's monotonic clock."""
    tied = events[0]
    assert isinstance(tied, ClockTied)
    if tied.boot and tied.boot == reference.boot:
        return events
    offset = (tied.wall - reference.wall) - (tied.at - reference.at)
    return [replace(event, at=event.at + offset) for event in events]


def _join_rounds(events: list[Event]) -> list[RoundHistory]:
    """Return the rounds in order. If several launchers noted the same round, merge them."""
    rounds: dict[int, RoundHistory] = {}
    for event in sorted(events, key=lambda one: one.at):
        if isinstance(event, RoundBegun):
            known = rounds.get(event.number)
            begun = RoundHistory(event.number, sorted(event.ranks), event.at)
            if known is not None:
                begun = replace(known, ranks=sorted({*known.ranks, *event.ranks}))
            rounds[event.number] = begun
        elif isinstance(event, RoundOver) and event.number in rounds:
            known = rounds[event.number]
            # Whichever worker failed first gives the reason.
            told = known.line or event.line
            kind = known.kind if known.line else event.kind
            rounds[event.number] = replace(known, over=event.at, kind=kind, line=told)
    return [rounds[number] for number in sorted(rounds)]


def _move_into(worker: WorkerHistory, round_of: RoundHistory) -> WorkerHistory:
    """Move the events from a machine whose wall clock is off into their round."""
    if round_of.over is not None and worker.last > round_of.over:
        worker = worker.move(round_of.over - worker.last)
    if worker.began < round_of.began:
        worker = worker.move(round_of.began - worker.began)
    return worker
