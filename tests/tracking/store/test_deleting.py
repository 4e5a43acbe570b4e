"""Deleting a run takes only what is certainly its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stoker.errors import ArgumentError, RecordError
from stoker.tracking.store import opening, record_files
from stoker.tracking.store.address import Address
from stoker.tracking.store.deleting import delete, plan, write_now
from stoker.tracking.store.events import RunStarted
from stoker.tracking.store.tracking import TrackedRun
from stoker.tracking.store.writer import StoreWriter
from tests.tracking.store.conftest import flush


@pytest.fixture
def run(store: Address, tmp_path: Path, own_writers: dict[Address, StoreWriter]) -> TrackedRun:
    """A run that made a file and a directory."""
    with TrackedRun("one", {}, store=store, kind="track") as run:
        (tmp_path / "model.keras").write_text("weights")
        (tmp_path / "out" / "deep").mkdir(parents=True)
        (tmp_path / "out" / "deep" / "a").write_text("a")
        run.artifact(tmp_path / "model.keras")
        run.artifact(tmp_path / "out")
    flush()
    return run


def test_what_the_run_made_is_deleted(store: Address, run: TrackedRun, tmp_path: Path) -> None:
    assert delete(store, run.id, artifacts=True).files == [tmp_path / "model.keras", tmp_path / "out"]
    assert not (tmp_path / "model.keras").exists()
    assert not (tmp_path / "out").exists()


def test_what_has_another_content_now_is_left(store: Address, run: TrackedRun, tmp_path: Path) -> None:
    (tmp_path / "model.keras").write_text("something of mine")
    (tmp_path / "out" / "thesis.txt").write_text("of mine, too")
    done = delete(store, run.id, artifacts=True)
    assert done.files == []
    assert done.left == [
        f"{tmp_path / name}: its content is not what the run made" for name in ("model.keras", "out")
    ]
    assert (tmp_path / "model.keras").read_text() == "something of mine"
    assert (tmp_path / "out" / "thesis.txt").exists()


def test_what_was_there_before_the_run_is_left(
    store: Address, tmp_path: Path, own_writers: dict[Address, StoreWriter]
) -> None:
    (tmp_path / "mine").mkdir()
    for name in ("old", "new"):
        (tmp_path / "mine" / name).write_text(name)
    os.utime(tmp_path / "mine" / "old", (1e9, 1e9))
    with TrackedRun("one", {}, store=store, kind="track") as run:
        run.artifact(tmp_path / "mine")
        run.artifact(tmp_path / "mine" / "old")
        (tmp_path / "link").symlink_to(tmp_path / "mine")
        run.artifact(tmp_path / "link")
        run.artifact(tmp_path)
    flush()
    done = delete(store, run.id, artifacts=True)
    assert done.files == []
    assert [line.rpartition(": ")[2] for line in done.left] == [
        "it was there before the run", "it was there before the run",
        "a link leads elsewhere", "it holds more than this run",
    ]  # fmt: skip
    assert (tmp_path / "mine" / "new").exists()


ODD = ("../../settings", "/etc/x", "a/b", "..", ".hidden", "-rf", "", "a\x00b", "a\nb", "x" * 300)


@pytest.mark.parametrize("name", ODD)
def test_an_id_never_becomes_a_path_elsewhere(name: str) -> None:
    with pytest.raises(RecordError, match="is not the id of a run"):
        record_files.path_of(name)


def test_a_run_with_an_odd_id_takes_no_file_with_it(store: Address, tmp_path: Path) -> None:
    """As somebody has put it into the store: Stoker gives no such id, and takes none."""
    (tmp_path / "settings.json").write_text("{}")
    (tmp_path / ".stoker" / "runs").mkdir(parents=True)
    columns = {"name": "x", "kind": "track", "program": "", "arguments": [], "parameters": {}, "versions": {}}
    write_now(
        store, [RunStarted("../../settings", {**columns, "machine": {}, "state": "finished", "started": 0.0})]
    )
    assert plan(store, "../../settings").files == []
    assert delete(store, "../../settings", artifacts=True).files == []
    assert (tmp_path / "settings.json").exists()
    assert opening.connect(store).execute("SELECT count(*) FROM runs") == [(0,)]
    with pytest.raises(ArgumentError, match="it becomes a file name"):
        TrackedRun("x", {}, store=store, kind="track", run_id="../../settings")
