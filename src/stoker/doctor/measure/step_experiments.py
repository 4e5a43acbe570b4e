"""The experiments of a session: it records steps while it measures, and times their repairs at the end.

This module is imported before the program starts, so it imports little, and never TensorFlow.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from stoker.doctor.attach.sites import USER, Sites
from stoker.doctor.experiments.recording import StepRecorder
from stoker.errors import describe_error
from stoker.printing import print_note
from stoker.records import Record

if TYPE_CHECKING:
    from stoker.doctor.probes.session import Session

# Functions in which threads of libraries wait for work: for an event, a socket or a timer, or a task of a pool.
_LIBRARY = os.path.dirname(threading.__file__)
_WAITS = {
    (threading.__file__, "wait"),
    (os.path.join(_LIBRARY, "selectors.py"), "select"),
    (os.path.join(_LIBRARY, "concurrent", "futures", "thread.py"), "_worker"),
}
# The packages whose threads belong to a notebook's kernel.
_KERNEL = ("ipykernel", "IPython")


class StepExperiments:
    """Records the steps of a session, and times their repairs after it ends.

    With `goes_on`, the program continues afterwards, and whatever the experiments change is restored.
    """

    def __init__(
        self, session: Session, seconds: float | None, announced: bool, goes_on: bool, skip: str = "Ctrl-C"
    ) -> None:
        self._session = session
        self._seconds = seconds
        self._announced = announced
        self._goes_on = goes_on
        # How a user skips the rest.
        self._skip = skip
        self._steps = StepRecorder(session.steps, session.recorder)
        session.steps.on_step_end = self._steps.step_ended
        session.is_recording = self._steps.is_recording

    def stop(self) -> None:
        """Stop recording."""
        self._session.steps.on_step_end = None
        self._steps.stop()

    def keep(self, record: Record, path: Path) -> None:
        """Save the recorded steps, so that their repairs can be timed again. If that fails, say so."""
        from stoker.doctor.experiments.saving import write_steps

        phase = record.tables.stepping_phase
        if not self._steps.recorded or phase is None:
            why = "none was recorded"
        elif phase.asynchronous:
            why = "prices on a device that works alongside the host are modelled"
        elif not are_other_threads_idle(self._session.recorder.sites):
            why = "a thread of the program is still at work"
        else:
            try:
                return write_steps(self._steps.recorded.values(), path)
            except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
                why = describe_error(error)
        print_note(f"no step was kept: {why}", prefix="\nstoker  ")
        return None

    def add_to(self, record: Record) -> Record:
        """Return the record with the times of its findings' repairs, or with the reason why none was timed.

        The session's patches of TensorFlow must have been removed.
        """
        if self._seconds == 0.0 or not record.findings:
            return record
        # Imported here, because the program would have to wait at its start for an earlier import. After Ctrl-C,
        # nothing may be imported either: importing a dataclass executes source, and Python then forgets to end by the
        # signal.
        from stoker.doctor.experiments.laboratory import ExperimentTerms, list_worth_timing, run_experiments

        why = self._why_not()
        if why is None:
            terms = ExperimentTerms(self._seconds, self._say if self._announced else None, self._goes_on)
            rows = run_experiments(record, list(self._steps.recorded.values()), terms)
            return dataclasses.replace(record, tables=dataclasses.replace(record.tables, experiments=rows))
        if not list_worth_timing(record):
            return record
        return dataclasses.replace(record, notes=[*record.notes, f"prices are modelled: {why}"])

    def _why_not(self) -> str | None:
        """Return why nothing can be timed; None if it can."""
        if not self._steps.recorded:
            return "no step was recorded (there were too few, or one was too large)"
        if not are_other_threads_idle(self._session.recorder.sites):
            return "another thread of the program was still at work"
        return None

    def _say(self, seconds: float) -> None:
        lead = "" if self._goes_on else "\n"
        print_note(
            f"timing the repairs for about {seconds:.0f} s ({self._skip} skips the rest)",
            prefix=f"{lead}stoker  ",
        )


def are_other_threads_idle(sites: Sites) -> bool:
    """Return whether this is the main thread, and no other thread of the program works or may begin to."""
    main = threading.main_thread()
    others = [thread for thread in threading.enumerate() if thread is not main]
    return threading.current_thread() is main and all(
        is_idle(thread, sites) or is_of_kernel(thread, sites) for thread in others
    )


def is_idle(thread: threading.Thread, sites: Sites) -> bool:
    """Return whether a thread, such as a progress bar's or an event loop's, belongs to a library and waits for work.

    None of the user's code is on its stack, so whatever it does when it wakes up is not the program's own work.
    """
    frames = list(_frames_of(thread))
    if not frames or (frames[0].f_code.co_filename, frames[0].f_code.co_name) not in _WAITS:
        return False
    return not any(sites.kind_of(frame.f_code.co_filename) == USER for frame in frames)


def is_of_kernel(thread: threading.Thread, sites: Sites) -> bool:
    """Return whether a thread belongs to a notebook's kernel: it passes messages on and runs no code of the user's."""
    frames = list(_frames_of(thread))
    packages = {str(frame.f_globals.get("__name__", "")).split(".")[0] for frame in frames}
    users = any(sites.kind_of(frame.f_code.co_filename) == USER for frame in frames)
    return not users and not packages.isdisjoint(_KERNEL)


def _frames_of(thread: threading.Thread) -> Iterator[FrameType]:
    """Yield the frames of a thread, innermost first; none if it has ended or runs no Python."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        yield frame
        frame = frame.f_back
