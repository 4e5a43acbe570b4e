"""The events of one worker's process, which its trainer notes as it goes.

    with journal.phase(SAVING):
        ...

`stoker launch` names the file in a variable. Any other process has no journal, and each of these functions returns at
once. An event is one `write`, so it survives however the process ends.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from stoker.goodput.accounts import DATA, OTHER, STARTUP, TRAINING
from stoker.goodput.events import (
    CheckpointCounted,
    ClockTied,
    Event,
    PhaseBegun,
    RunResumed,
    StepsDone,
    encode,
)

# The variable from which `bootstrap` reads the path of the file.
VARIABLE = "STOKER_EVENTS"
# Calls are noted together, once per hundredth of the process's life so far, within these limits in seconds. A kill
# loses no time in the ledger, only the number of steps done since the last event.
_SOONEST_S, _LATEST_S, _SHARE = 0.25, 60.0, 0.01


class GoodputJournal:
    """The open file of this process, and the calls and waits that are not yet written."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._is_broken = False
        self.phase, self.line = STARTUP, ""
        self.nameless_runs = 0
        self._run = ""
        self._first = self._last = 0
        self._steps_s = self._data_s = self._peers_s = 0.0
        tied = ClockTied.now()
        self._began_at = tied.at
        self.write(tied)

    @property
    def is_own(self) -> bool:
        """Whether this process opened the file and can write to it."""
        return not self._is_broken and os.getpid() == self._pid

    def write(self, event: Event) -> None:
        """Append an event. A full disk ends the journal, but nothing else."""
        self._written_at = event.at
        try:
            os.write(self._file, encode(event))
        except OSError:
            self._is_broken = True

    def enter(self, phase: str, line: str) -> None:
        """Begin a phase."""
        with self._lock:
            if (phase, line) != (self.phase, self.line):
                self.flush()
                self.phase, self.line = phase, line
                self.write(PhaseBegun(time.monotonic_ns(), phase, line))

    def leave_steps(self) -> None:
        """Begin the time between steps, unless the last event was written only just now: epochs may be short."""
        with self._lock:
            if time.monotonic_ns() - self._written_at >= _SOONEST_S * 1e9:
                self.enter(OTHER, self.line)

    def add_call(self, first: int, last: int, seconds: float, data_s: float, *, cold: bool) -> None:
        """Add a call of the loop; a call that compiled gets an event of its own."""
        with self._lock:
            if cold or first != self._last:
                # Note the time before the call, as of the call's beginning.
                self.flush(time.monotonic_ns() - round(seconds * 1e9))
                self._first = first
            self._last = last
            self._data_s += min(data_s, seconds)
            self._steps_s += max(0.0, seconds - data_s)
            now = time.monotonic_ns()
            wait_s = min(_LATEST_S, max(_SOONEST_S, _SHARE * (now - self._began_at) / 1e9))
            if cold or now - self._written_at >= wait_s * 1e9:
                self.flush(cold=cold)

    def add_wait(self, account: str, seconds: float) -> None:
        """Add a wait for data, or for the other workers."""
        with self._lock:
            if account == DATA:
                self._data_s += seconds
            else:
                self._peers_s += seconds

    def resume(self, run: str, step: int) -> None:
        """Start counting the steps of a run."""
        with self._lock:
            self.flush()
            self._run, self._first, self._last = run, step, step
            self.write(RunResumed(time.monotonic_ns(), run, step))

    def flush(self, at: int | None = None, *, cold: bool = False) -> None:
        """Write what was added since the last event, as of now or of another moment."""
        if self._steps_s or self._peers_s or self._data_s:
            now = time.monotonic_ns() if at is None else at
            steps_s, data_s, peers_s = (round(one, 6) for one in (self._steps_s, self._data_s, self._peers_s))
            self.write(StepsDone(now, self._run, self._first, self._last, steps_s, data_s, peers_s, cold))
        self._first = self._last
        self._steps_s = self._data_s = self._peers_s = 0.0


_journal: GoodputJournal | None = None


def begin(path: str) -> None:
    """Open the journal of this process. Called before the program starts."""
    global _journal
    try:
        _journal = GoodputJournal(path)
    except OSError:
        # The agent and its files are gone.
        _journal = None


def _own() -> GoodputJournal | None:
    """Return the journal of this process; a forked child has none."""
    return _journal if _journal is not None and _journal.is_own else None


def is_kept() -> bool:
    """Return whether this process keeps a journal."""
    return _own() is not None


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Put the process in this phase within the block.

    Afterwards it is in the earlier phase or, after training, in the program's own code.
    """
    journal = _own()
    if journal is None:
        yield
        return
    before = OTHER if name == TRAINING else journal.phase
    journal.enter(name, journal.line)
    try:
        yield
    finally:
        journal.enter(before, journal.line)


@contextmanager
def at_line(line: str) -> Iterator[None]:
    """Charge the process's work within the block to this line of the user's program.

    Afterwards the user's own code runs.
    """
    journal = _own()
    if journal is None:
        yield
        return
    journal.enter(journal.phase, line)
    try:
        yield
    finally:
        journal.enter(OTHER, "")


@contextmanager
def waiting(account: str) -> Iterator[None]:
    """Count the time within the block as waiting for data or for the other workers of the job."""
    begin_ns = time.monotonic_ns()
    try:
        yield
    finally:
        if (journal := _own()) is not None:
            journal.add_wait(account, (time.monotonic_ns() - begin_ns) / 1e9)


def note_resumed(run: str | None, step: int) -> None:
    """Note that a training run continues from this step.

    A run without a checkpoint is named by its number in the program.
    """
    if (journal := _own()) is not None:
        if run is None:
            journal.nameless_runs += 1
        journal.resume(f"run {journal.nameless_runs}" if run is None else run, step)


def leave_steps() -> None:
    """Note that the steps of an epoch are over.

    Validation and callbacks come next; a kill during them loses no steps.
    """
    if (journal := _own()) is not None:
        journal.leave_steps()


def go_on_with_steps() -> None:
    """Note that the next steps begin."""
    if (journal := _own()) is not None:
        journal.enter(TRAINING, journal.line)


def note_call(first: int, last: int, seconds: float, data_s: float = 0.0, *, cold: bool) -> None:
    """Note that a call of the loop did steps `first` + 1 to `last` of the run."""
    if (journal := _own()) is not None:
        journal.add_call(first, last, seconds, data_s, cold=cold)


def note_counted(run: str, step: int) -> None:
    """Note that a checkpoint is complete. Any thread may call this."""
    if (journal := _own()) is not None:
        journal.write(CheckpointCounted(time.monotonic_ns(), run, step))
