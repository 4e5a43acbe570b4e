"""The books of one run, from beginning to end: the same for a program, a Keras loop and a notebook's cell.

run = MeasuredRun.here("cell")
run.begin()
...
record = run.end(exit_code=0)
run.keep(record)  # at `run.path`
"""

from __future__ import annotations

import contextvars
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from stoker import clock
from stoker.doctor.diagnosis.record import RunFacts, record
from stoker.doctor.diagnosis.timeline import timeline_of
from stoker.doctor.measure.heartbeat import Heartbeat
from stoker.doctor.probes.measurements import Books, Measurements
from stoker.doctor.probes.parts.windows import WindowsPart
from stoker.records import ProfilerEvent, ProfilerWindow, Record
from stoker.tracking.store import record_files

if TYPE_CHECKING:
    from stoker.doctor.measure.step_experiments import StepExperiments
    from stoker.doctor.probes.session import Session
    from stoker.doctor.probes.tensorflow_events import WindowEvents
    from stoker.tracking.store.tracking import TrackedRun


# The runs being measured now. There may be several: a cell may hold a `fit` with a watch of its own.
_open: list[MeasuredRun] = []


class MeasuredRun:
    """A run that is being measured in this process."""

    def __init__(self, facts: RunFacts, session: Session, path: Path) -> None:
        self.session = session
        self.path = path
        self._facts = facts
        self._heartbeat: Heartbeat | None = None
        self._experiments: StepExperiments | None = None
        # The run in the store. For a program under `stoker run`, the parent process holds it.
        self._kept: TrackedRun | None = None
        # Windows of the profiler: how many have been converted, and which are not saved yet.
        self._events_seen = 0
        self._unsaved: list[ProfilerWindow] = []

    @classmethod
    def here(cls, program: str) -> MeasuredRun:
        """Return a run that begins now, in a process that has already imported TensorFlow."""
        # Imported here: `stoker run` itself measures nothing in its own process.
        from stoker.doctor.probes.session import Session

        facts = RunFacts(record_files.new_id(), program, [], clock.utc_timestamp())
        return cls(facts, Session(clock.now_ns()), record_files.path_of(facts.id))

    def record_steps(self, seconds: float | None, announced: bool, skip: str = "Ctrl-C") -> None:
        """Time the repairs when the run ends, for at most `seconds` (None: the default time, 0: not at all).

        The program continues afterwards. Nothing is timed inside another run, which times the repairs itself.
        """
        from stoker.doctor.measure.step_experiments import StepExperiments
        from stoker.tracking.store import inherited

        if seconds != 0.0 and inherited.run is None:
            self._experiments = StepExperiments(self.session, seconds, announced, goes_on=True, skip=skip)

    def begin(self, poll: Callable[[], None] | None = None) -> None:
        """Attach to TensorFlow and start the heartbeat. It calls `poll`, or by default the session's."""
        # Imported here: a program under `stoker run` does not need this, and would have to wait for it at its start.
        from stoker.tracking.store import measured

        self._kept = measured.begin(self._facts.id, self._facts.program, self._facts.argv, "watch")
        _open.append(self)
        self.session.attach_now()
        self.beat(poll or self.session.poll, lambda: None)

    def beat(self, poll: Callable[[], None], save: Callable[[], None]) -> None:
        """Start a heartbeat that calls `poll` and `save`."""
        self._heartbeat = Heartbeat(poll, save)
        self._heartbeat.start()

    def look(self) -> Record:
        """Return the record so far."""
        made = record(self._facts, self.session.measurements(), "running")
        if self._kept is not None:
            from stoker.tracking.store import measured

            measured.update(self._kept, made)
        return made

    def save(self) -> None:
        """Save the record so far."""
        self._write(self._record(self.session.measurements(), "running"))

    def end(self, exit_code: int) -> Record:
        """Close the books, leave TensorFlow as it was, and return the record, finished and priced."""
        made = self._record(self._close(), "ended")
        self._detach()
        if exit_code == 0 and self._experiments is not None and not _open:
            made = _with_experiments(made, self._experiments)
        self._experiments = None
        return finish_record(made, exit_code)

    def keep(self, made: Record) -> None:
        """Save the finished record.

        Raises:
            UsageError, OSError: the record cannot be written.
        """
        record_files.prepare(self.path.parent)
        self._write(made)
        if self._kept is not None:
            from stoker.tracking.store import measured

            measured.end(self._kept, made)

    def hand_over(self, experiment: Callable[[Record], Record] | None = None) -> None:
        """Close the books, and save them for the process that knows how this one ends; then what `experiment` adds."""
        made = self._record(self._close(), "ended")
        self._write(made)
        if experiment is not None and (tried := experiment(made)) is not made:
            self._write(tried)

    def abandon(self, wait: bool = True) -> None:
        """Leave TensorFlow as it was and save nothing. The heartbeat's own thread must not `wait`."""
        if self._heartbeat is not None:
            self._heartbeat.stop(wait)
        if self._kept is not None:
            self._kept.finish("failed")
        self._detach()

    def _detach(self) -> None:
        if self._experiments is not None:
            self._experiments.stop()
        self.session.detach()
        if self in _open:
            _open.remove(self)

    def _close(self) -> Measurements:
        # The run ends here: closing the books is not part of it.
        measurements = self.session.measurements(ended=True)
        if self._heartbeat is not None:
            self.session.close()
            self._heartbeat.stop()
        return measurements

    def _record(self, measurements: Measurements, state: str) -> Record:
        fresh = measurements[WindowsPart].events[self._events_seen :]
        self._events_seen += len(fresh)
        self._unsaved += [_window(measurements, window) for window in fresh]
        return record(self._facts, measurements, state)

    def _write(self, made: Record) -> None:
        record_files.write(made, self.path)
        if self._unsaved:
            record_files.append_events(self._unsaved, self.path)
            self._unsaved = []


def _with_experiments(made: Record, experiments: StepExperiments) -> Record:
    """Return the record with the timings. A failure of ours must not reach the program, which continues."""
    try:
        # Run in a context of its own: a guard around the loop must not see the experiments.
        return contextvars.Context().run(experiments.add_to, made)
    except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
        note = f"repairs could not be timed ({type(error).__name__}: {error}); prices are modelled"
        return dataclasses.replace(made, notes=[*made.notes, note])


def finish_record(made: Record, exit_code: int) -> Record:
    """Return the record of a run that has ended, with its exit code and prices."""
    # Imported here: the program's process does not need this, and would have to wait for it at its start.
    from stoker.doctor.pricing.prices import price_record

    return price_record(dataclasses.replace(made, exit_code=exit_code, state="finished"))


def _window(m: Measurements, window: WindowEvents) -> ProfilerWindow:
    """Return a window of the profiler as it is saved: in seconds from the run's start, its events in microseconds."""
    return ProfilerWindow(
        timeline=timeline_of(m, [window.beside]),
        start_s=(window.start_ns - m[Books].start_ns) / 1e9,
        length_s=window.length_ns / 1e9,
        threads={
            thread: [ProfilerEvent(start / 1e3, length / 1e3, name) for start, length, name in events]
            for thread, events in window.threads.items()
        },
    )
