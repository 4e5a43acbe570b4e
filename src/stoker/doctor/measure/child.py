"""The half of `stoker run` that lives in the program's process: when measuring begins there, and when it ends."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

from stoker.doctor.attach.frames import without_frames
from stoker.doctor.attach.sites import OWN_ROOT, USER, Sites
from stoker.doctor.diagnosis.record import RunFacts
from stoker.doctor.experiments.recording import StepRecorder
from stoker.doctor.measure.run import MeasuredRun
from stoker.doctor.probes.session import Session
from stoker.printing import print_note
from stoker.records import ExperimentRow, Record
from stoker.tracking.store import inherited

ExceptHook = Callable[[type[BaseException], BaseException, TracebackType | None], object]
ThreadExceptHook = Callable[[threading.ExceptHookArgs], object]


@dataclasses.dataclass(frozen=True)
class ChildSettings:
    """What `stoker run` tells the program's process."""

    record: str
    start_ns: int
    facts: RunFacts
    user_root: str | None
    # We set TF_CPP_MIN_LOG_LEVEL and remove it once TensorFlow has read it.
    log_level_is_ours: bool
    # The arguments of `software_gpu.enable`, if the program gets a software GPU.
    software_gpu: Mapping[str, object] | None = None
    # The URL of the store for the program's own runs.
    store: str | None = None
    # Seconds for timing repairs when the program has ended: None for as long as is usual, 0 for no experiments.
    experiments_s: float | None = 0.0
    # Whether to say on stderr that repairs are timed.
    announces: bool = True

    def to_json(self) -> str:
        """The settings as one line for the environment."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ChildSettings:
        """Read back what `to_json` wrote."""
        values = json.loads(text)
        values["facts"] = RunFacts(**values["facts"])
        return cls(**values)


class Attachment:
    """One measured program: saves its record every second and once more at the end."""

    def __init__(self, settings: ChildSettings) -> None:
        self._settings = settings
        self._session = Session(settings.start_ns, settings.user_root, settings.software_gpu)
        self._session.on_import = self._tensorflow_imported
        self._run = MeasuredRun(settings.facts, self._session, Path(settings.record).resolve())
        self._pid = os.getpid()
        self._steps: StepRecorder | None = None
        if settings.experiments_s != 0.0:
            self._steps = StepRecorder(self._session.steps, self._session.recorder)
            self._session.steps.on_step_end = self._steps.step_ended
            self._session.is_recording = self._steps.is_recording
        self._session.pauses.enable()
        inherited.run, inherited.store = settings.facts.id, settings.store

    def start(self) -> None:
        """Watch for TensorFlow. Until it is imported there is nothing to do, and no thread."""
        self._session.watch_imports()
        atexit.register(self._finish)

    def _tensorflow_imported(self) -> None:
        if self._settings.log_level_is_ours:
            os.environ.pop("TF_CPP_MIN_LOG_LEVEL", None)
        sys.excepthook = _without_our_frames(sys.excepthook)
        threading.excepthook = _without_our_frames_in_threads(threading.excepthook)
        self._run.beat(self._session.poll, self._save)

    def _save(self) -> None:
        """Save on a heartbeat. A fault here must not end the heartbeat; the report mentions it."""
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

    def _experiment(self, record: Record) -> list[ExperimentRow]:
        """Time the repairs of what was found. TensorFlow is as it was without us while that runs."""
        if self._steps is None or not self._steps.recorded or not self._program_is_over():
            return []
        # Not before: every import is paid before the program starts. Not after Ctrl-C either: importing a dataclass
        # executes source, and then Python forgets that it has to end by the signal.
        from stoker.doctor.experiments.laboratory import run_experiments

        self._steps.stop()
        self._session.detach()
        for stream in (sys.stdout, sys.stderr):
            # What the program has written goes out now, not after the experiments.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        return run_experiments(
            record, list(self._steps.recorded.values()), self._settings.experiments_s, self._say
        )

    def _program_is_over(self) -> bool:
        """Whether the program has ended by itself, and no thread of it is still at work."""
        crashed = getattr(sys, "last_type", None) is not None or getattr(sys, "last_exc", None) is not None
        others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
        return not crashed and all(is_idle(thread, self._session.recorder.sites) for thread in others)

    def _say(self, text: str) -> None:
        if self._settings.announces:
            print_note(text, prefix="\nstoker  ")


def is_idle(thread: threading.Thread, sites: Sites) -> bool:
    """Whether a thread is a library's, such as a progress bar's, and waits for something to do.

    Nothing of the user's is on its stack, so what it may do when it wakes up is not the program's own work.
    """
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None or (frame.f_code.co_filename, frame.f_code.co_name) != (threading.__file__, "wait"):
        return False
    while frame is not None:
        if sites.kind_of(frame.f_code.co_filename) == USER:
            return False
        frame = frame.f_back
    return True


def attach(text: str) -> None:
    """Begin to measure this process, before the program starts."""
    Attachment(ChildSettings.from_json(text)).start()


def _strip(error: BaseException | None) -> None:
    """Take Stoker's frames out of an error and of those behind it."""
    seen: set[int] = set()
    pending = [error]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        current.__traceback__ = without_frames(current.__traceback__, OWN_ROOT)
        pending += [current.__cause__, current.__context__]


def _without_our_frames(hook: ExceptHook) -> ExceptHook:
    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _strip(error)
        hook(kind, error, without_frames(trace, OWN_ROOT))

    return excepthook


def _without_our_frames_in_threads(hook: ThreadExceptHook) -> ThreadExceptHook:
    def excepthook(args: threading.ExceptHookArgs) -> None:
        _strip(args.exc_value)
        trace = without_frames(args.exc_traceback, OWN_ROOT)
        hook(threading.ExceptHookArgs((args.exc_type, args.exc_value, trace, args.thread)))

    return excepthook
