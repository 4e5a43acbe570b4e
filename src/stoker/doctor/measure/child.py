"""The half of `stoker run` that runs in the program's process: when measuring begins there, and when it ends."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from stoker.doctor.attach.frames import drop_frames
from stoker.doctor.attach.sites import OWN_ROOT
from stoker.doctor.measure.child_settings import ChildSettings
from stoker.doctor.measure.run import MeasuredRun
from stoker.doctor.measure.step_experiments import StepExperiments
from stoker.doctor.probes.session import Session
from stoker.printing import print_note
from stoker.records import Record
from stoker.tracking.store import inherited, record_files

ExceptHook = Callable[[type[BaseException], BaseException, TracebackType | None], object]
ThreadExceptHook = Callable[[threading.ExceptHookArgs], object]


class Attachment:
    """A measured program. Its record is saved every second, and once more at the end."""

    def __init__(self, settings: ChildSettings) -> None:
        self._settings = settings
        self._session = Session(settings.start_ns, settings.user_root, settings.software_gpu)
        self._session.on_import = self._note_tensorflow_import
        self._run = MeasuredRun(settings.facts, self._session, Path(settings.record).resolve())
        self._pid = os.getpid()
        self._experiments: StepExperiments | None = None
        if settings.experiments_s != 0.0 or settings.keeps_step:
            self._experiments = StepExperiments(
                self._session, settings.experiments_s, settings.announces, goes_on=False
            )
        self._session.pauses.enable()
        inherited.run, inherited.store = settings.facts.id, settings.store

    def start(self) -> None:
        """Watch for TensorFlow. Until it is imported, there is nothing to do, and no thread."""
        self._session.watch_imports()
        atexit.register(self._finish)

    def _note_tensorflow_import(self) -> None:
        if self._settings.log_level_is_ours:
            os.environ.pop("TF_CPP_MIN_LOG_LEVEL", None)
        sys.excepthook = self._note_error(_hide_our_frames(sys.excepthook))
        threading.excepthook = _hide_our_frames_in_threads(threading.excepthook)
        self._run.beat(self._session.poll, self._save)

    def _note_error(self, hook: ExceptHook) -> ExceptHook:
        """Wrap an exception hook so that it also keeps the memory's owners if memory ran out."""

        def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            hook(kind, error, trace)
            self._session.note_error(error)

        return excepthook

    def _save(self) -> None:
        """Save on a heartbeat. A failure must not end the heartbeat; the report mentions it."""
        try:
            self._run.save()
        except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
            self._session.recorder.note(f"the record could not be saved ({type(error).__name__}: {error})")

    def _finish(self) -> None:
        """Save for the last time, after all other exit handlers. A forked child has nothing to save."""
        if os.getpid() != self._pid:
            return
        try:
            if not self._session.imported:
                self._session.recorder.note(
                    "the program never imported TensorFlow: there is nothing to measure"
                )
            self._run.hand_over(self._experiment)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
            print_note(f"the record could not be saved ({type(error).__name__}: {error})")

    def _experiment(self, record: Record) -> Record:
        """Return the record with the repairs timed. All patches of TensorFlow are removed first."""
        crashed = getattr(sys, "last_type", None) is not None or getattr(sys, "last_exc", None) is not None
        if self._experiments is None or crashed:
            return record
        self._experiments.stop()
        self._session.detach()
        for stream in (sys.stdout, sys.stderr):
            # Show what the program has written now, not after the experiments.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        if self._settings.keeps_step:
            self._experiments.keep(record, record_files.steps_path_of(self._run.path))
        return self._experiments.add_to(record)


def attach(text: str) -> None:
    """Begin to measure this process, before the program starts."""
    Attachment(ChildSettings.from_json(text)).start()


def _strip(error: BaseException | None) -> None:
    """Remove Stoker's frames from an error and from the errors that led to it."""
    seen: set[int] = set()
    pending = [error]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        current.__traceback__ = drop_frames(current.__traceback__, OWN_ROOT)
        pending += [current.__cause__, current.__context__]


def _hide_our_frames(hook: ExceptHook) -> ExceptHook:
    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _strip(error)
        hook(kind, error, drop_frames(trace, OWN_ROOT))

    return excepthook


def _hide_our_frames_in_threads(hook: ThreadExceptHook) -> ThreadExceptHook:
    def excepthook(args: threading.ExceptHookArgs) -> None:
        _strip(args.exc_value)
        trace = drop_frames(args.exc_traceback, OWN_ROOT)
        hook(threading.ExceptHookArgs((args.exc_type, args.exc_value, trace, args.thread)))

    return excepthook
