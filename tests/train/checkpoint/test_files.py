"""Checkpoint files on real disks: whole or not there, checked when read, one process at a time."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import struct
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from stoker.train.checkpoint import files, saved
from stoker.train.checkpoint.directory import CheckpointDirectory
from stoker.train.checkpoint.options import CheckpointError
from tests.support import HANGS_S, stop_when, wait_until
from tests.train.checkpoint import hostile

DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "uint64", "bool")
SHAPES = ((), (0, 3), (5,), (2, 3, 4))


def arrays() -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(0)
    return {
        f"{dtype}{shape}": (numbers.random(shape) * 100).astype(np.dtype(dtype))
        for dtype in DTYPES
        for shape in SHAPES
    }


def written(path: Path, details: dict[str, object] | None = None) -> Path:
    files.write(path, arrays().items(), details or {})
    return path


def checked(path: Path) -> files.Contents:
    return files.read(path)


def test_all_types_and_shapes_come_back_bit_for_bit(tmp_path: Path) -> None:
    contents = checked(written(tmp_path / "a", {"step": 7, "loss": float("inf")}))
    assert contents.index.details == {"step": 7, "loss": float("inf")}
    back = contents.arrays
    for name, array in arrays().items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()
    assert back["bfloat16(5,)"].dtype == ml_dtypes.bfloat16


def test_nothing_but_the_file_is_left(tmp_path: Path) -> None:
    written(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_every_changed_byte_is_seen(tmp_path: Path) -> None:
    path = written(tmp_path / "a")
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[position] ^= 0x10
        path.write_bytes(changed)
        with pytest.raises(files.DamagedFile):
            checked(path)


def test_every_length_it_could_be_cut_to_is_seen(tmp_path: Path) -> None:
    path = written(tmp_path / "a")
    whole = path.read_bytes()
    for length in [0, 1, 12, 39, *range(40, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(files.DamagedFile, match=r"cut short|end is missing"):
            checked(path)


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    path = written(tmp_path / "a")
    whole = path.read_bytes()
    path.write_bytes(whole[:8] + struct.pack("<I", 99) + whole[12:])
    with pytest.raises(files.DamagedFile, match="format 99, this version of Stoker reads format 1"):
        checked(path)
    path.write_bytes(b"something else entirely, and long enough to be a checkpoint")
    with pytest.raises(files.DamagedFile, match="does not begin as a checkpoint"):
        checked(path)
    entry = files.read(written(tmp_path / "b")).index.entries["float32(5,)"]
    data = bytearray(whole)
    data[entry.offset] ^= 1
    path.write_bytes(data)
    with pytest.raises(files.DamagedFile, match=r"float32\(5,\) does not match its checksum"):
        checked(path)
    with pytest.raises(files.DamagedFile, match="cannot be read"):
        checked(tmp_path / "missing")


def test_a_large_array_is_not_doubled_in_memory(tmp_path: Path) -> None:
    """In a process of its own: what it ever had in memory grows by the one array, not by two."""
    program = """
import resource, sys
from pathlib import Path
import numpy as np
from stoker.train.checkpoint import files
path = Path(sys.argv[1])
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
array = np.arange(16_000_000, dtype=np.float64)
before = peak()
files.write(path, [("large", array)], {})
written = peak()
del array
assert files.read(path).arrays["large"][-1] == 15_999_999
print(written - before, peak() - before)
"""
    done = run_python(program, str(tmp_path / "a"))
    writing, reading = (float(word) for word in done.stdout.split())
    assert writing < 40
    assert reading < 40  # 122 MiB would be a second copy


def run_python(program: str, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == code, done.stderr
    return done


WRITER = """
import sys
from pathlib import Path
import numpy as np
from stoker.train.checkpoint import files
from stoker.train.checkpoint.directory import CheckpointDirectory
directory = CheckpointDirectory(sys.argv[1])
print("ready", flush=True)
step = 0
while True:
    step += 1
    files.write(directory.make_path(step), [(str(n), np.full(300_000, step)) for n in range(4)], {"step": step})
    directory.prune(2, set())
"""


def test_killed_at_any_moment_every_file_with_a_name_is_whole(tmp_path: Path) -> None:
    moments = random.Random(1)
    cut_short = 0
    for number in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            wait_until(lambda: any(tmp_path.glob("*.stoker")))
            time.sleep(moments.uniform(0.0, 0.1))
            if number % 2:
                stop_when(writer.pid, lambda: any(tmp_path.glob(f"*{files.TEMPORARY}")))
            writer.send_signal(signal.SIGKILL)
        cut_short += len(list(tmp_path.glob(f"*{files.TEMPORARY}")))
        directory = CheckpointDirectory(tmp_path)
        assert not list(tmp_path.glob(f"*{files.TEMPORARY}"))
        for path in directory.files():
            contents = checked(path)
            for array in contents.arrays.values():
                assert (array == contents.index.details["step"]).all()
        assert directory.files()
        directory.release()
    assert cut_short, "no kill hit a write: the test proves nothing"


def test_a_limit_on_file_size_is_one_clear_error(tmp_path: Path) -> None:
    program = """
import resource, sys
from pathlib import Path
import numpy as np
from stoker.train.checkpoint import files
path = Path(sys.argv[1])
files.write(path / "old", [("a", np.zeros(10))], {})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    files.write(path / "new", [("a", np.zeros(1_000_000))], {})
except files.CheckpointError as error:
    print(error)
"""
    done = run_python(program, str(tmp_path))
    assert "could not write the checkpoint" in done.stdout
    assert "larger than this process may write; the ones before it are untouched" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    checked(tmp_path / "old")


def test_a_full_disk_is_one_clear_error_and_the_old_ones_stay(small_disk: Path) -> None:
    directory = CheckpointDirectory(small_disk)
    old = directory.make_path(1)
    files.write(old, [("a", np.ones(1000))], {})
    with pytest.raises(CheckpointError) as caught:
        files.write(directory.make_path(2), [("a", np.zeros(3_000_000, np.uint8))], {})
    assert "the disk is full; the ones before it are untouched" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert directory.files() == [old]
    checked(old)
    files.write(directory.make_path(2), [("a", np.zeros(1_000_000, np.uint8))], {})
    assert len(directory.files()) == 2
    directory.release()


def test_names_go_by_the_order_of_saving_not_by_step(tmp_path: Path) -> None:
    directory = CheckpointDirectory(tmp_path)
    for step in (100, 200, 50):
        files.write(directory.make_path(step), [], {})
    (tmp_path / "notes.txt").write_text("mine")
    steps = [path.name.split("-")[-1] for path in directory.files()]
    assert steps == ["100.stoker", "200.stoker", "50.stoker"]
    first, second, third = directory.files()
    directory.prune(1, {third})
    assert directory.files() == [second]
    assert (tmp_path / "notes.txt").exists()
    assert not first.exists()
    directory.release()


def test_two_users_of_one_directory_are_told(tmp_path: Path) -> None:
    directory = CheckpointDirectory(tmp_path / "a")
    with pytest.raises(CheckpointError, match="this process already saves checkpoints in"):
        CheckpointDirectory(tmp_path / "x" / ".." / "a")
    program = "import sys; from stoker.train.checkpoint.directory import *; CheckpointDirectory(sys.argv[1])"
    done = run_python(program, str(tmp_path / "a"), code=1)
    assert f"process {os.getpid()} already saves checkpoints in {tmp_path / 'a'}" in done.stderr
    directory.release()
    directory.release()
    run_python(program, str(tmp_path / "a"))


def test_a_place_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"cannot use .*file/a for checkpoints: Not a directory"):
        CheckpointDirectory(tmp_path / "file" / "a")
    with pytest.raises(CheckpointError, match=r"cannot use .*file for checkpoints: File exists"):
        CheckpointDirectory(tmp_path / "file")


def test_a_directory_that_was_refused_is_free_again(tmp_path: Path) -> None:
    in_the_way = tmp_path / "checkpoint-00000001-step-1.stoker.partial"
    in_the_way.mkdir()
    with pytest.raises(CheckpointError, match="give a directory that can be written"):
        CheckpointDirectory(tmp_path)
    in_the_way.rmdir()
    CheckpointDirectory(tmp_path).release()


@pytest.mark.parametrize("case", hostile.INDEXES)
def test_an_index_that_lies_is_refused_and_nothing_is_allocated_for_it(tmp_path: Path, case: str) -> None:
    path = written(tmp_path / "a")
    path.write_bytes(hostile.with_index(path.read_bytes(), hostile.INDEXES[case]))
    tracemalloc.start()
    try:
        with pytest.raises(files.DamagedFile) as refused:
            checked(path)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert "\n" not in str(refused.value)
    with pytest.raises(files.DamagedFile):
        files.read(path)


@pytest.mark.parametrize("case", hostile.PLACES)
def test_what_is_no_plain_file_is_refused(tmp_path: Path, case: str) -> None:
    path = written(tmp_path / "a")
    hostile.PLACES[case](path)
    with pytest.raises(files.DamagedFile) as refused:
        checked(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("case", hostile.DETAILS)
def test_details_that_are_none_of_a_run_are_refused(tmp_path: Path, case: str) -> None:
    path = tmp_path / "a"
    files.write(path, arrays().items(), {"step": 1, "fingerprint": "f", "progress": {}})
    assert saved.read(path).step == 1
    path.write_bytes(hostile.with_index(path.read_bytes(), hostile.DETAILS[case]))
    with pytest.raises(files.DamagedFile) as refused:
        saved.read(path)
    assert "\n" not in str(refused.value)


def test_random_changes_are_refused_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "a"
    progress = {"epoch": 3, "logs": {"loss": 0.5}, "plan": {"feed": "resident"}}
    files.write(path, arrays().items(), {"step": 1, "fingerprint": "f", "progress": progress})
    whole = path.read_bytes()
    chance = random.Random(5)
    for _ in range(400):
        path.write_bytes(hostile.mutated(whole, chance))
        with contextlib.suppress(files.DamagedFile):
            saved.read(path)
