"""Files appear whole or not at all."""

from __future__ import annotations

import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from stoker.files import replacing, write_atomically


def _leave_early(path: str) -> None:
    with replacing(Path(path)) as file:
        file.write(b"half")
        file.flush()
        os._exit(9)


def test_a_file_is_written_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", "später", durable=True)
    assert (tmp_path / "a").read_bytes() == "später".encode()
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_failed_write_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(TypeError, match="bytes-like"):
        write_atomically(path, 5)  # type: ignore[arg-type]
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_process_that_dies_in_the_middle_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    process = multiprocessing.get_context("spawn").Process(target=_leave_early, args=(str(path),))
    process.start()
    process.join()
    assert process.exitcode == 9
    assert path.read_text() == "old"


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "script", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o741)
    link.symlink_to(path)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o741


def test_a_place_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "no" / "a", "x")
