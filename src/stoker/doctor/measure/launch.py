"""Starting a program so that it measures itself: the same Python with `bootstrap` in front, and nothing else changed.

target = Target("train.py", ["--epochs", "3"])
target.check()
launched = LaunchedProgram(target)
status = supervise.run(launched.command, launched.environment)
record = launched.finish(supervise.exit_code_of(status))
"""

from __future__ import annotations

import dataclasses
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import sysconfig
import warnings
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from stoker import clock
from stoker.doctor.diagnosis.record import RunFacts
from stoker.doctor.measure.bootstrap import open_door
from stoker.doctor.measure.child_settings import ChildSettings
from stoker.doctor.measure.experiment_options import ExperimentOptions
from stoker.doctor.measure.run import finish_record
from stoker.errors import RecordError, UsageError
from stoker.periodic import Every
from stoker.records import Device, Record
from stoker.redaction import redact_arguments
from stoker.tf_internals.versions import TENSORFLOW
from stoker.tracking.store import address, measured, record_files
from stoker.version import __version__

_DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tensorflow-rocm", "tf-nightly")
RUN_ID = "STOKER_RUN_ID"
# Before this release, TensorFlow's C++ log level is fixed at start-up, and the profiler logs.
_LOG_LEVEL_IS_DYNAMIC = (2, 21)
# How often the record goes to the store while the program runs.
_LOOK_EVERY_S = 2.0


@dataclasses.dataclass(frozen=True)
class Target:
    """The program to run, with its arguments: a file, or with `is_module` a module as in `python -m`."""

    name: str
    arguments: list[str]
    is_module: bool = False

    def check(self) -> None:
        """Check that the program can be started and measured.

        Raises:
            UsageError: the program cannot be started or measured.
        """
        if self.is_module:
            _check_module(self.name)
        else:
            _check_script(self.name)
        version = _tensorflow_version()
        if version is not None and not TENSORFLOW.includes(version):
            raise UsageError(TENSORFLOW.refusal(version))

    def check_syntax(self) -> None:
        """Check that the program, if it is a file, is Python source without a syntax error.

        Raises:
            UsageError: it is not; the message names the line.
        """
        if not self.is_module:
            _check_syntax(Path(self.name))

    @property
    def user_root(self) -> str | None:
        """The program's own directory, if it lies among the libraries and would be taken for a library."""
        if self.is_module:
            return None
        directory = Path(self.name).resolve().parent
        libraries = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
        return str(directory) if any(directory.is_relative_to(library) for library in libraries) else None


class LaunchedProgram:
    """One run of a target: how to start it, and its record from before the start until after the end.

    `device` holds the arguments of `software_gpu.enable`, if the program gets a software GPU; `store` is the URL of the
    store, if it is not the default one; `experiments` says whether repairs are timed at the end, and for how long.

    Raises:
        UsageError: records cannot be written here.
    """

    def __init__(
        self,
        target: Target,
        device: Mapping[str, object] | None,
        store: str | None,
        experiments: ExperimentOptions,
    ) -> None:
        record_files.prepare()
        # A worker's job has already chosen the run's id.
        run_id = os.environ.pop(RUN_ID, None) or record_files.new_id()
        facts = RunFacts(run_id, target.name, redact_arguments(target.arguments), clock.utc_timestamp())
        self.path = record_files.path_of(facts.id)
        # Checked before anything is written: an unusable store makes the request invalid.
        self._run = measured.begin(facts.id, facts.program, facts.argv, "run", store)
        # The last record read. If the program deletes its file, this is all there is.
        self._last = _empty_record(facts)
        record_files.write(self._last, self.path)
        self._looks = Every(seconds=_LOOK_EVERY_S)
        words = [target.name, *target.arguments]
        self.command = _interpreter() + (["-m"] if target.is_module else []) + words
        self.environment = _environment(self.path, facts, target.user_root, device, store, experiments)

    def look(self, drawn: bool) -> Record | None:
        """Return the record as the program last saved it, or None. Now and then, copy the record to the store.

        Unless the record is `drawn`, it is read only as often as the store needs it.
        """
        if not drawn and not self._looks.due():
            return None
        try:
            record = record_files.read(self.path)
        except RecordError:
            return None
        self._last = record
        if self._looks.due():
            self._looks.mark()
            measured.update(self._run, record)
        return record

    def finish(self, exit_code: int) -> Record:
        """Return the program's last record, finished and saved; or what is known without one, if the program left none.

        This function never raises: the program has ended, and its exit code must stay its own.
        """
        try:
            left = record_files.read(self.path)
        except RecordError as error:
            left = dataclasses.replace(
                self._last, notes=[*self._last.notes, f"the program left no record: {error}"]
            )
        made = finish_record(left, exit_code)
        measured.end(self._run, made)
        try:
            record_files.write(made, self.path)
        except OSError as error:
            unsaved = f"the record could not be saved ({error.strerror})"
            made = dataclasses.replace(made, notes=[*made.notes, unsaved])
        return made


def _check_script(target: str) -> None:
    path = Path(target)
    if path.is_dir():
        raise UsageError(f"{target} is a directory: name a Python file, or use -m package")
    try:
        # Python judges the contents: a program with a syntax error ends as it would without Stoker.
        path.open("rb").close()
    except FileNotFoundError:
        raise UsageError(f"no such file: {target}") from None
    except OSError as error:
        raise UsageError(f"cannot read {target}: {error.strerror}") from None


def _check_syntax(path: Path) -> None:
    if not path.is_file():
        # A pipe can be read only once.
        return
    source = path.read_bytes()
    if source.startswith(importlib.util.MAGIC_NUMBER) or zipfile.is_zipfile(path):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise UsageError(f"{place}: {type(error).__name__}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{path} is not a Python program: {error}") from None


def _check_module(name: str) -> None:
    top = name.partition(".")[0]
    if importlib.machinery.PathFinder.find_spec(top, [os.getcwd(), *sys.path[1:]]) is None:
        raise UsageError(f"no module named {top!r}: is it installed in this environment?")


def _tensorflow_version() -> str | None:
    """Return the installed TensorFlow's version without importing it; None if it is not installed as a package."""
    for name in _DISTRIBUTIONS:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _interpreter() -> list[str]:
    """Return the command of this Python, with the flags that it was started with (-W, -X, -O ...)."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [sys.executable, *flags]


def _environment(
    path: Path,
    facts: RunFacts,
    user_root: str | None,
    device: Mapping[str, object] | None,
    given: str | None,
    experiments: ExperimentOptions,
) -> dict[str, str]:
    environment = dict(os.environ)
    ours = _log_level_needed(_tensorflow_version()) and "TF_CPP_MIN_LOG_LEVEL" not in environment
    if ours:
        environment["TF_CPP_MIN_LOG_LEVEL"] = "1"
    store = address.find(given)
    # An absolute address, so that the program's runs get there even if the program changes its directory.
    url = address.OFF if store is None else store.url or str(store)
    settings = ChildSettings(
        record=str(path.resolve()),
        start_ns=clock.now_ns(),
        facts=facts,
        user_root=user_root,
        log_level_is_ours=ours,
        software_gpu=device,
        store=url,
        experiments_s=experiments.seconds,
        announces=experiments.announced,
        keeps_step=experiments.keeps_step,
    )
    environment["STOKER_RUN"] = settings.to_json()
    open_door(environment)
    return environment


def _log_level_needed(version: str | None) -> bool:
    if version is None:
        return False
    major, minor = (int(part) for part in version.split(".")[:2])
    return (major, minor) < _LOG_LEVEL_IS_DYNAMIC


def _empty_record(facts: RunFacts) -> Record:
    """Return the record before the program starts. It is all that is left if the program dies at once."""
    return Record(
        id=facts.id,
        program=facts.program,
        argv=facts.argv,
        exit_code=None,
        versions={"stoker": __version__},
        device=Device(),
        wall_s=0.0,
        steps=0,
        steps_per_s=None,
        examples_per_s=None,
        accounts={},
        findings=[],
        started=facts.started,
        state="running",
    )
