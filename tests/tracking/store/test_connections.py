"""A store in a file is its owner's only, also where it was not before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.tracking.store import address, audit, opening
from stoker.tracking.store.deleting import write_now


def modes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}


@pytest.fixture(autouse=True)
def _generous_umask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


def test_a_fresh_store_is_its_owners_only(tmp_path: Path) -> None:
    store = address.parse(f"sqlite:///{tmp_path / 'a' / 'b' / 'stoker.db'}")
    connection = opening.connect(store)
    write_now(store, [audit.note("event", None, {})])
    found = modes(tmp_path / "a" / "b")
    assert {"stoker.db", "stoker.db-wal", "stoker.db-shm", audit.head_path(store).name} == set(found)
    assert set(found.values()) == {0o600}
    assert modes(tmp_path) == {"a": 0o700}
    assert modes(tmp_path / "a") == {"b": 0o700}
    connection.close()


def test_a_store_that_others_could_read_is_closed_and_that_is_said_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = address.parse(f"sqlite:///{tmp_path / 'stoker.db'}")
    first = opening.connect(store)
    for path in tmp_path.iterdir():
        path.chmod(0o644)
    for _ in range(2):
        opening.connect(store).close()
    assert set(modes(tmp_path).values()) == {0o600}
    (line,) = capfd.readouterr().err.splitlines()
    assert (
        line
        == f"stoker: {tmp_path / 'stoker.db'} could be read by other users; now only its owner can (mode 0600)"
    )
    first.close()


def test_opening_a_store_again_keeps_the_locks_on_it(tmp_path: Path) -> None:
    """POSIX drops a process's locks on a file when it closes any descriptor of it."""
    store = address.parse(f"sqlite:///{tmp_path / 'stoker.db'}")
    first = opening.connect(store)
    with first.transaction():
        opening.connect(store).close()
        script = "import sqlite3, sys\nsqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
        done = subprocess.run(
            [sys.executable, "-c", script, str(store.path)], capture_output=True, check=False
        )
        assert b"database is locked" in done.stderr
    first.close()
