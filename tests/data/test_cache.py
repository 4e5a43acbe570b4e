"""The cache: made once, never out of date, whole or not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker.data import csv_files
from tests.data.frames import mixed, rows_of
from tests.support import ROOT


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each pass over the files of a CSV source."""
    made: list[int] = []
    real = csv_files.CsvFiles.blocks

    def counted(self: Any, columns: Any) -> Any:
        made.append(1)
        return real(self, columns)

    monkeypatch.setattr(csv_files.CsvFiles, "blocks", counted)
    return made


def test_a_second_call_reads_the_cache(tmp_path: Path, passes: list[int]) -> None:
    mixed(100).to_csv(tmp_path / "t.csv", index=False)
    first = rows_of(stoker.data.csv(tmp_path / "t.csv", label="kind"))
    second = rows_of(stoker.data.csv(tmp_path / "t.csv", label="kind", shuffle=False, seed=8))
    assert len(passes) == 1
    assert all(np.array_equal(first[0][name], second[0][name]) for name in first[0])


def test_a_changed_file_is_noticed_and_its_old_cache_removed(
    tmp_path: Path, passes: list[int], cache_directory: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    stoker.data.csv(path)
    path.write_text("a,b\n7,2\n")
    inputs, _ = rows_of(stoker.data.csv(path))
    assert inputs["a"].tolist() == [7]
    assert len(passes) == 2
    assert len([p for p in cache_directory.iterdir() if p.is_dir()]) == 1


def test_files_with_the_same_columns_have_caches_of_their_own(tmp_path: Path, passes: list[int]) -> None:
    for name in ("a", "b", "a", "b"):
        path = tmp_path / f"{name}.csv"
        if not path.exists():
            path.write_text(f"x,y\n{ord(name)},2\n")
        assert rows_of(stoker.data.csv(path))[0]["x"].tolist() == [ord(name)]
    assert len(passes) == 2


def test_a_dataset_goes_on_when_its_cache_is_removed(tmp_path: Path, cache_directory: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    dataset = stoker.data.csv(path)
    for one in cache_directory.rglob("*.bin"):
        one.unlink()
    for _ in range(2):
        assert rows_of(dataset)[0]["a"].tolist() == [1, 3]


def test_a_damaged_cache_is_made_again(tmp_path: Path, passes: list[int], cache_directory: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    stoker.data.csv(path)
    next(cache_directory.rglob("int64.bin")).write_bytes(b"")
    assert rows_of(stoker.data.csv(path))[0]["a"].tolist() == [1, 3]
    assert len(passes) == 2


def test_a_full_disk_keeps_the_rows_in_memory_and_says_so(tmp_path: Path, small_disk: Path) -> None:
    rows = 300_000
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(f"{number},1" for number in range(rows)))
    with pytest.warns(stoker.data.DataWarning, match="No space left on device"):
        dataset = stoker.data.csv(tmp_path / "t.csv", batch_size=100_000, cache=small_disk)
    for _ in range(2):
        inputs, _ = rows_of(dataset)
        assert np.array_equal(inputs["a"], np.arange(rows))
    assert not list(small_disk.rglob("*.bin"))


_PROGRAM = """
import sys
import stoker
dataset = stoker.data.csv(sys.argv[1], batch_size=1000)
print(sum(int(inputs["id"].numpy().astype("object").sum()) for inputs in dataset))
"""

# The readers load it when they are used.
pytestmark = pytest.mark.tensorflow


@pytest.mark.slow
def test_two_processes_that_write_one_cache(tmp_path: Path, cache_directory: Path) -> None:
    frame = mixed(20_000)
    frame.to_csv(tmp_path / "t.csv", index=False)
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path / "t.csv")]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        for _ in range(2)
    ]
    outputs = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0, 0], outputs
    assert {out.strip() for out, _ in outputs} == {str(sum(frame["id"].tolist()))}
    assert len([p for p in cache_directory.iterdir() if p.is_dir()]) == 1


def test_cache_false_leaves_nothing_behind(tmp_path: Path, cache_directory: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    assert rows_of(stoker.data.csv(tmp_path / "t.csv", cache=False))[0]["a"].tolist() == [1]
    assert not cache_directory.exists()
