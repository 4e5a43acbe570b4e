"""Compiling the plug-in against the installed TensorFlow, once, into the user's cache directory.

TensorFlow's C++ interface changes with every version, so a build serves one version of TensorFlow, one Python ABI and
one state of the plug-in's sources. The name of its directory contains all three. If two processes want to build at the
same time, a lock lets only one, and the finished directory appears in one step.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stoker.errors import StokerError, check_local_path
from stoker.files import user_cache
from stoker.logs import LOGGER

SOURCES = Path(__file__).parent / "plugin"
KERNEL_TABLE = SOURCES / "kernel_table.txt"
_LIBRARY = "libstoker_gpu.so"
# In older versions, TensorFlow's loops make a stream of a plug-in's device wait for itself, which fails.
_OLDEST = (2, 19)
# Compiled separately, in parallel, because it takes as long as all others together.
_SLOW_SOURCE = "recurrent.cc"
_FLAGS = (
    "-O2",
    "-fPIC",
    "-std=c++17",
    "-w",  # TensorFlow's headers warn a lot
    "-D_GLIBCXX_USE_CXX11_ABI=1",
    "-DEIGEN_MAX_ALIGN_BYTES=64",
)


class BuildError(StokerError):
    """The plug-in cannot be built here: TensorFlow is missing or too old, or the compiler is missing or failed."""


@dataclass(frozen=True)
class TensorFlow:
    """An installed TensorFlow, found without importing it."""

    distribution: str
    version: str
    directory: Path


def installed_tensorflow() -> TensorFlow:
    """Find the installed TensorFlow.

    Raises:
        BuildError: TensorFlow is not installed.
    """
    spec = importlib.util.find_spec("tensorflow")
    names = importlib.metadata.packages_distributions().get("tensorflow", [])
    if spec is None or not spec.submodule_search_locations or not names:
        raise BuildError("TensorFlow is not installed: pip install tensorflow-cpu")
    directory = Path(spec.submodule_search_locations[0])
    # Both `tensorflow` and `tensorflow_cpu` may claim the package; the one with the files has the version.
    name = sorted(names, key=lambda n: (not n.startswith("tensorflow"), len(n)))[0]
    return TensorFlow(name, importlib.metadata.version(name), directory)


def is_too_old(tensorflow: TensorFlow) -> bool:
    """Return whether this TensorFlow is too old for what the plug-in offers."""
    major, minor = tensorflow.version.split(".")[:2]
    return (int(major), int(minor)) < _OLDEST


def cache_directory() -> Path:
    """Return the directory of the builds.

    Raises:
        ArgumentError: `STOKER_CACHE_DIR` is not a local path.
    """
    place = user_cache("software-gpu")
    check_local_path(place)
    return place


def library_path(tensorflow: TensorFlow) -> Path:
    """Return the path of the build for this TensorFlow, this Python and these sources, which need not exist yet."""
    digest = hashlib.sha256(" ".join(_FLAGS).encode())
    for source in _sources():
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    abi = sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag
    name = f"{tensorflow.distribution}-{tensorflow.version}-{abi}-{digest.hexdigest()[:16]}"
    return cache_directory() / name / _LIBRARY


def compiler() -> str | None:
    """Return the C++ compiler: `CXX`, else g++ or clang++; None if there is none."""
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        found = shutil.which(name) if name else None
        if found:
            return found
    return None


def ensure_built(progress: Callable[[str], None] | None = None) -> Path:
    """Return the path of the plug-in, after building it if it does not exist yet.

    Args:
        progress: called with one line when a build starts; None writes it to standard error.

    Raises:
        BuildError: TensorFlow is missing or too old, or the compiler is missing or failed.
    """
    tensorflow = installed_tensorflow()
    if is_too_old(tensorflow):
        oldest = f"{_OLDEST[0]}.{_OLDEST[1]}"
        raise BuildError(
            f"the software GPU needs TensorFlow {oldest} or later, and {tensorflow.version} is installed"
        )
    library = library_path(tensorflow)
    if library.exists():
        return library
    if sys.platform != "linux":
        raise BuildError(f"the software GPU runs on Linux, not on {sys.platform}")
    program = compiler()
    if program is None:
        raise BuildError(
            "the software GPU needs a C++ compiler once, to build its TensorFlow plug-in: "
            "install g++ (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++) or set CXX"
        )
    say = progress or LOGGER.info
    with _lock(library.parent.with_name(f"{library.parent.name}.lock")):
        if not library.exists():
            say(f"building the software GPU for TensorFlow {tensorflow.version} (once, about 20 s) ...")
            _build(program, tensorflow, library)
    return library


def _sources() -> list[Path]:
    return sorted(path for path in SOURCES.iterdir() if path.suffix in (".cc", ".h"))


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    import fcntl  # not on every system, and the command line must start on all of them

    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(program: str, tensorflow: TensorFlow, library: Path) -> None:
    """Compile in a directory beside the final one, then rename that, so that no process ever sees half a build."""
    work = Path(tempfile.mkdtemp(prefix="building-", dir=library.parent.parent))
    try:
        # TensorFlow's headers take most of the time, so the sources are compiled in two units, not fifteen.
        others = [s.name for s in _sources() if s.suffix == ".cc" and s.name != _SLOW_SOURCE]
        units = {"main.cc": others, "slow.cc": [_SLOW_SOURCE]}
        for unit, names in units.items():
            (work / unit).write_text("".join(f'#include "{name}"\n' for name in names), encoding="utf-8")
        include = (f"-I{SOURCES}", f"-I{tensorflow.directory / 'include'}")
        _run_all([[program, *_FLAGS, *include, "-c", unit, "-o", f"{unit}.o"] for unit in units], work)
        target = str(tensorflow.directory)
        link = ["-l:libtensorflow_framework.so.2", "-l:libtensorflow_cc.so.2", f"-Wl,-rpath,{target}"]
        objects = [f"{unit}.o" for unit in units]
        _run_all([[program, "-shared", *objects, "-o", _LIBRARY, f"-L{target}", *link]], work)
        for leftover in [*units, *objects]:
            (work / leftover).unlink()
        if library.parent.exists():  # a directory without a library: somebody removed the file alone
            shutil.rmtree(library.parent)
        work.rename(library.parent)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run_all(commands: list[list[str]], directory: Path) -> None:
    """Run commands in parallel. The first failure is the error."""
    running = [
        subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for command in commands
    ]
    results = [(process.communicate()[0], process.returncode) for process in running]
    for output, code in results:
        if code != 0:
            errors = [line for line in output.splitlines() if "error" in line] or output.splitlines()
            reason = errors[0].strip() if errors else f"exit code {code}"
            raise BuildError(f"the software GPU did not compile with {commands[0][0]}: {reason}")
