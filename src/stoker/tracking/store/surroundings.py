"""The surroundings of a run: program, commit and uncommitted changes, versions, machine, optimizer.

Facts about the process are found once, without importing anything that the program has not imported.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

from stoker.version import __version__

_PACKAGES = {"tensorflow": ("tensorflow", "tensorflow-cpu"), "keras": ("keras",), "numpy": ("numpy",)}
# Nobody reads a longer diff.
_LONGEST_DIFF = 1 << 20
_GIT_S = 10


def find_program() -> tuple[str, list[str]]:
    """Return the running program and its arguments."""
    return Path(sys.argv[0]).name or "python", list(sys.argv[1:])


@cache
def find_versions() -> dict[str, str]:
    """Return the versions of Stoker, of Python, and of TensorFlow, Keras and NumPy if the program has imported them."""
    found = {"stoker": __version__, "python": platform.python_version()}
    for name, distributions in _PACKAGES.items():
        for distribution in distributions if name in sys.modules else ():
            try:
                found[name] = metadata.version(distribution)
                break
            except metadata.PackageNotFoundError:
                continue
    return found


@cache
def describe_machine() -> dict[str, object]:
    """Describe the host, its processors and its memory."""
    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "memory": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
    }


@cache
def describe_code() -> dict[str, str | None]:
    """Return `git_commit` and `git_diff` of the current directory; both are None outside of a repository."""
    commit = _run_git("rev-parse", "HEAD")
    diff = _run_git("diff", "HEAD", "--no-ext-diff", "--no-color") if commit else None
    if diff is not None and len(diff) > _LONGEST_DIFF:
        diff = diff[:_LONGEST_DIFF] + "\n(cut here)\n"
    return {"git_commit": commit.strip() if commit else None, "git_diff": diff or None}


def describe_optimizer(model: object) -> dict[str, object]:
    """Return the name and learning rate of a Keras model's optimizer, which costs one read; {} without an optimizer."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        return {}
    rate = optimizer.get_config().get("learning_rate")
    return {"optimizer": type(optimizer).__name__, "learning_rate": rate}


def _run_git(*words: str) -> str | None:
    command = ["git", "-c", "core.fsmonitor=false", *words]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=_GIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
