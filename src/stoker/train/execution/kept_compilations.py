"""XLA's compilations of Stoker's loops, kept for later processes.

    <user cache>/stoker/compilations/<key>/      of one processor, TensorFlow, Stoker, and settings of XLA
    <user cache>/stoker/compilations/processes/  what running processes use: links to these, and new compilations

TensorFlow looks only into the directory of its own process. Before a loop is compiled, links to the kept compilations
are put there; afterwards, the files that TensorFlow has written are linked into the kept directory. So nobody reads a
file that is being written or removed, and compilations of the user's own functions are not kept. TensorFlow itself
checks that a kept compilation is of the same program. An incomplete file would fail the training, so it is not linked.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import keras
import tensorflow as tf

from stoker import compilations
from stoker.files import sync_directory
from stoker.logs import LOGGER
from stoker.processors import usable_cores
from stoker.tf_internals.profiler import log_level
from stoker.version import __version__

LIMIT_BYTES = 512 << 20
_PATTERN = "*.pb"
_CPU_INFO = Path("/proc/cpuinfo")
# The beginnings of the lines that matter for a processor, on Intel's, AMD's and ARM's.
_FEATURES = ("vendor_id", "model name", "flags", "CPU implementer", "CPU part", "CPU variant", "Features")
_FIRST_PROCESSOR = 16 * 1024
# After this long, the directory of a killed process is removed.
_LEFTOVER_S = 86400.0
# The number of the field with the code in TensorFlow's `XlaSerializedCacheEntry`.
_CODE = 3
# A severity of Abseil's above everything that is logged.
_SILENT = 3


def are_kept() -> bool:
    """Return whether the next process will find the compilations of this one."""
    return compilations.own_directory() is not None


@contextmanager
def kept_around() -> Iterator[None]:
    """Use kept compilations for a call within the block, and keep the new ones that it makes."""
    own = compilations.own_directory()
    if own is None:
        yield
        return
    place = compilations.root() / make_key()
    try:
        _link_into(own, place)
    except OSError as error:
        LOGGER.debug("no kept compilations: %s", error)
    known = {path.name for path in own.glob(_PATTERN)}
    with _quietly():
        yield
    try:
        new = [path for path in own.glob(_PATTERN) if path.name not in known and is_whole(path)]
        for path in new:
            _keep(path, place)
        if new:
            make_room(compilations.root(), LIMIT_BYTES)
    except OSError as error:
        LOGGER.debug("compilations are not kept: %s", error)


def make_key(cpu_info: Path = _CPU_INFO) -> str:
    """Return the name of the directory for this processor, this TensorFlow and this Stoker.

    A program compiled for one processor may not run on another, and TensorFlow does not refuse to try.
    """
    facts = (
        _describe_processor(cpu_info),
        tf.__version__,
        keras.__version__,
        __version__,
        usable_cores(),
        tf.config.threading.get_intra_op_parallelism_threads(),
        compilations.other_flags(),
        os.environ.get("XLA_FLAGS", ""),
    )
    return hashlib.blake2b(repr(facts).encode(), digest_size=12).hexdigest()


def _describe_processor(cpu_info: Path) -> str:
    """Return the system's description of the first processor; without one, the machine's name."""
    try:
        with cpu_info.open(encoding="utf-8", errors="replace") as file:
            first = file.read(_FIRST_PROCESSOR).partition("\n\n")[0]
    except OSError:
        first = ""
    lines = [line for line in first.splitlines() if line.startswith(_FEATURES)]
    return "\n".join(lines) or f"unknown {os.uname().nodename}"


def _link_into(own: Path, place: Path) -> None:
    own.mkdir(parents=True, exist_ok=True)
    for path in place.glob(_PATTERN):
        if not is_whole(path):
            path.unlink(missing_ok=True)
            continue
        # Another process may remove the file just now.
        with contextlib.suppress(FileExistsError, FileNotFoundError):
            os.link(path, own / path.name)


def _keep(path: Path, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    # Another process may have kept the same compilation.
    with contextlib.suppress(FileExistsError):
        os.link(path, place / path.name)
    sync_directory(place)


def is_whole(path: Path) -> bool:
    """Return whether a file is complete: a protobuf message with only strings, the program's code among them."""
    try:
        with path.open("rb") as file:
            size, at, fields = os.fstat(file.fileno()).st_size, 0, set()
            while at < size:
                file.seek(at)
                head = file.read(16)
                if not head or head[0] & 7 != 2 or head[0] >> 3 == 0:
                    return False
                length, used = _read_number(head[1:])
                if used == 0:
                    return False
                at += 1 + used + length
                fields.add(head[0] >> 3)
            return at == size and _CODE in fields
    except OSError:
        return False


def _read_number(data: bytes) -> tuple[int, int]:
    """Return a protobuf number, and how many bytes it takes; 0 bytes if it is cut short."""
    number = 0
    for index, byte in enumerate(data[:10]):
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return number, index + 1
    return 0, 0


def make_room(root: Path, limit: int) -> None:
    """Remove the least recently used compilations, down to `limit` bytes, and the leftovers of killed processes."""
    found = []
    for path in root.glob(f"*/{_PATTERN}"):
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            # Many file systems record a use only once a day.
            found.append((max(status.st_atime, status.st_mtime), status.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit:
            break
        path.unlink(missing_ok=True)
        total -= size
    for directory in (root / "processes").glob("*"):
        with contextlib.suppress(FileNotFoundError):
            is_old = time.time() - directory.stat().st_mtime > _LEFTOVER_S
            if is_old and not _is_alive(directory.name.partition("-")[0]):
                shutil.rmtree(directory, ignore_errors=True)


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except PermissionError:
        return True
    except (ValueError, ProcessLookupError):
        return False
    return True


_level = None


@contextmanager
def _quietly() -> Iterator[None]:
    """Suppress the lines that TensorFlow logs for each compilation it loads.

    TensorFlow compares the processor's features with a list that includes two settings of the compiler, which no
    processor has. The features are part of the directory's name, so they are the same.
    """
    global _level
    if _level is None:
        _level = log_level()
    if _level is None:
        yield
        return
    get, set_level = _level
    before = get()
    set_level(_SILENT)
    try:
        yield
    finally:
        set_level(before)
