"""The experiments of one session: its steps are recorded while it measures, and their repairs are timed at its end.

This module is imported before the program starts, so it imports little and TensorFlow not at all.
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
from stoker.printing import print_note
from stoker.records import Record

if TYPE_CHECKING:
    from stoker.doctor.probes.session import Session

# Where threads of libraries wait for something to do: for an event, a socket or a timer, or a task of a pool.
_LIBRARY = os.path.dirname(threading.__file__)
_WAITS = {
    (threading.__file__, "wait"),
    (os.path.join(_LIBRARY, "selectors.py"), "select"),
    (os.path.join(_LIBRARY, "concurrent", "futures", "thread.py"), "_worker"),
}
# The packages whose threads belong to a notebook's kernel.
_KERNEL = ("ipykernel", "IPython")


class StepExperiments:
    """Records the steps of a session, and times their repairs when it has ended.

    `goes_on` is whether the program does after that: then whatever experiments change is put back.
    """

    def __init__(
        self, session: Session, seconds: float | None, announced: bool, goes_on: bool, skip: str = "Ctrl-C"
    ) -> None:
        self._session = session
        self._seconds = seconds
        self._announced = announced
        self._goes_on = goes_on
        # What a user does to skip the rest.
        self._skip = skip
        self._steps = StepRecorder(session.steps, session.recorder)
        session.steps.on_step_end = self._steps.step_ended
        session.is_recording = self._steps.is_recording

    def stop(self) -> None:
        """Record nothing more."""
        self._session.steps.on_step_end = None
        self._steps.stop()

    def keep(self, record: Record, path: Path) -> None:
        """Save the recorded steps, so that their repairs can be timed again; say so if they cannot be saved."""
        from stoker.doctor.experiments.saving import write_steps

        phase = record.tables.stepping_phase
        if not self._steps.recorded or phase is None:
            why = "none was recorded"
        elif phase.asynchronous:
            why = "prices on a device that works beside the host are modelled"
        elif not are_other_threads_idle(self._session.recorder.sites):
            why = "a thread of the program is still at work"
        else:
            try:
                return write_steps(self._steps.recorded.values(), path)
            except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
                why = f"{type(error).__name__}: {error}".splitlines()[0]
        print_note(f"no step was kept: {why}", prefix="\nstoker  ")
        return None

    def add_to(self, record: Record) -> Record:
        """The record with what the repairs of its findings were timed to take, or with the reason why none was.

        The session's patches of TensorFlow must be out.
        """
        if self._seconds == 0.0 or not record.findings:
            return record
        # Not before: every import is paid before the program starts. Not after Ctrl-C either: importing a dataclass
        # executes source, and then Python forgets that it has to end by the signal.
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
        """Why nothing can be timed; None if it can."""
        if not self._steps.recorded:
            return "no step was recorded (there were too few, or one was too large)"
        if not are_other_threads_idle(self._session.recorder.sites):
            return "another thread of the program was still at work"
        return None

    def _say(self, seconds: float) -> None:
        lead = "" if self._goes_on else "\n"
        print_note(
            f"timing the repairs for up to {seconds:.0f} s ({self._skip} skips the rest)",
            prefix=f"{lead}stoker  ",
        )


def are_other_threads_idle(sites: Sites) -> bool:
    """Whether this is the main thread, and no other thread of the program is at work or may begin to be."""
    main = threading.main_thread()
    others = [thread for thread in threading.enumerate() if thread is not main]
    return threading.current_thread() is main and all(
        is_idle(thread, sites) or is_of_kernel(thread, sites) for thread in others
    )


def is_idle(thread: threading.Thread, sites: Sites) -> bool:
    """Whether a thread is a library's, such as a progress bar's or an event loop's, and waits for something to do.

    Nothing of the user's is on its stack, so what it may do when it wakes up is not the program's own work.
    """
    frames = list(_frames_of(thread))
    if not frames or (frames[0].f_code.co_filename, frames[0].f_code.co_name) not in _WAITS:
        return False
    return not any(sites.kind_of(frame.f_code.co_filename) == USER for frame in frames)


def is_of_kernel(thread: threading.Thread, sites: Sites) -> bool:
    """Whether a thread is one of a notebook's kernel, which passes messages on and runs nothing of the user's."""
    frames = list(_frames_of(thread))
    packages = {str(frame.f_globals.get("__name__", "")).split(".")[0] for frame in frames}
    users = any(sites.kind_of(frame.f_code.co_filename) == USER for frame in frames)
    return not users and not packages.isdisjoint(_KERNEL)


def _frames_of(thread: threading.Thread) -> Iterator[FrameType]:
    """The frames of a thread, innermost first; none of one that has ended or runs no Python."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        yield frame
        frame = frame.f_back
