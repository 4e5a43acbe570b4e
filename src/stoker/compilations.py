"""Keep XLA's compilations between processes: choose the place where TensorFlow puts those of this process.

TensorFlow reads the place from an environment variable when it starts, which is before anybody knows what will be
compiled. So importing Stoker only names a directory of this process's own in that variable. The trainer fills the
directory with what earlier processes compiled for the same loops, and collects what is new
(`train/execution/kept_compilations.py`).

`keep-compilations = false` in `[tool.stoker]` of pyproject.toml, or `STOKER_KEEP_COMPILATIONS=0`, switches it off.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
from pathlib import Path

from stoker.files import user_cache

VARIABLE = "TF_XLA_FLAGS"
SWITCH = "STOKER_KEEP_COMPILATIONS"
KEY = "keep-compilations"
_DIRECTORY = "--tf_xla_persistent_cache_directory="
# Keep only compilations for processors: those for GPUs have never been tried.
_DEVICES = "--tf_xla_persistent_cache_device_types=CPU"
_PROCESSES = "processes"
# On a disk that is nearly full, TensorFlow could not write, and training would fail.
_LEAST_FREE = 1 << 30
# Names under which Stoker's commands are started; they run programs but compile nothing themselves.
_COMMANDS = ("-m", "stoker", "tensorflow_model_server", "__main__.py")

_own: Path | None = None


def root() -> Path:
    """Return the directory of all kept compilations."""
    return user_cache("compilations")


def keep_compilations() -> None:
    """Have TensorFlow keep what XLA compiles in this process, if it has not started yet."""
    if _is_wanted() and not _has_tensorflow_started():
        name_directory()


def name_directory() -> None:
    """Name the directory of this process in TensorFlow's variable, unless the user has named one."""
    global _own
    place = root()
    words = [word for word in os.environ.get(VARIABLE, "").split() if not _is_ours(word)]
    if any(word.startswith(_DIRECTORY) for word in words) or any(one.isspace() for one in str(place)):
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        status = os.statvfs(place)
    except OSError:
        return
    if not os.access(place, os.W_OK | os.X_OK) or status.f_bavail * status.f_frsize < _LEAST_FREE:
        return
    _own = place / _PROCESSES / f"{os.getpid()}-{os.urandom(4).hex()}"
    os.environ[VARIABLE] = " ".join([*words, f"{_DIRECTORY}{_own}", _DEVICES])
    # TensorFlow makes the directory if it compiles anything.
    atexit.register(_remove_own, os.getpid(), _own)


def own_directory() -> Path | None:
    """Return where TensorFlow puts what XLA compiles in this process; None if nothing is kept, or in a forked child."""
    return _own if _own is not None and _own.name.startswith(f"{os.getpid()}-") else None


def other_flags() -> str:
    """Return the user's own flags in TensorFlow's variable."""
    return " ".join(word for word in os.environ.get(VARIABLE, "").split() if not _is_ours(word))


def _is_ours(word: str) -> bool:
    return word == _DEVICES or (
        word.startswith(_DIRECTORY) and Path(word.removeprefix(_DIRECTORY)).parent == root() / _PROCESSES
    )


def _is_wanted() -> bool:
    """Return whether to keep compilations: not in commands or tests, under `stoker run`, or if switched off."""
    started_as = os.path.basename(next(iter(getattr(sys, "argv", [])), ""))
    measured = "STOKER_RUN" in os.environ and "STOKER_EVENTS" not in os.environ
    if started_as in _COMMANDS or measured or "pytest" in sys.modules:
        return False
    said = os.environ.get(SWITCH)
    return said != "0" if said is not None else not _is_switched_off()


def _is_switched_off() -> bool:
    try:
        with open("pyproject.toml", encoding="utf-8", errors="replace") as file:
            if KEY not in file.read():
                return False
    except OSError:
        return False
    from stoker import config
    from stoker.errors import UsageError

    try:
        return not config.load(Path()).keep_compilations
    except UsageError:
        return True


def _has_tensorflow_started() -> bool:
    if "tensorflow" not in sys.modules:
        return False
    from stoker.tf_internals.startup import has_started

    return has_started()


def _remove_own(process: int, directory: Path) -> None:
    if os.getpid() == process:
        shutil.rmtree(directory, ignore_errors=True)
