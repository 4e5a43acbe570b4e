"""What was done to the audit, to a run, a link or a file behind the store's back is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.store import audit, opening
from stoker.store.address import Address
from stoker.store.connections import Connection
from stoker.store.deleting import delete
from stoker.store.tracking import Run
from stoker.store.verifying import verify
from stoker.store.writer import Writer
from tests.store.conftest import flush


@pytest.fixture
def made(store: Address, tmp_path: Path, own_writers: dict[Address, Writer]) -> str:
    """A run that has used a file and made another; its id."""
    (tmp_path / "data.csv").write_text("1,2\n")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_bytes(b"\x00" * 1000)
    with Run("one", {}, store=store, kind="track") as run:
        run.uses(tmp_path / "data.csv")
        run.artifact(tmp_path / "model", kind="model")
    flush()
    assert verify(store).problems == []
    assert verify(store).files == 2
    return run.id


def behind_its_back(store: Address) -> Connection:
    """A connection of somebody who may do everything, also get around the triggers."""
    connection = opening.connect(store)
    if connection.dialect == "sqlite":
        connection.execute("DROP TRIGGER audit_no_update")
        connection.execute("DROP TRIGGER audit_no_delete")
    else:
        connection.execute("ALTER TABLE audit DISABLE TRIGGER ALL")
    return connection


def test_an_edited_row(store: Address, made: str) -> None:
    behind_its_back(store).execute("UPDATE audit SET actor = 'somebody' WHERE seq = 2")
    (problem,) = verify(store).problems
    assert problem == f"audit: row 2 (artifact, run {made}) was changed"


def test_an_edited_row_with_a_new_hash(store: Address, made: str) -> None:
    connection = behind_its_back(store)
    (row,) = connection.execute(
        "SELECT seq, time, actor, event, run, details, previous FROM audit WHERE seq = 2"
    )
    forged = (*row[:2], "somebody", *row[3:6])
    sealed = audit.seal(forged, row[6])
    connection.execute("UPDATE audit SET actor = 'somebody', hash = ? WHERE seq = 2", (sealed,))
    (problem,) = verify(store).problems
    assert problem == "audit: row 3 does not follow row 2: one of them was changed"


def test_a_missing_row(store: Address, made: str) -> None:
    behind_its_back(store).execute("DELETE FROM audit WHERE seq = 2")
    problems = verify(store).problems
    assert problems[0] == "audit: row 2 is missing"
    assert "the audit does not know its link" in problems[1]


def test_a_chain_that_was_cut(store: Address, made: str) -> None:
    behind_its_back(store).execute("DELETE FROM audit WHERE seq = 4")
    (problem,) = verify(store).problems
    assert problem == "audit: it ends at row 3, but had a row 4: the end was cut off"


def test_a_chain_that_was_emptied_without_a_trace_beside_it(store: Address, made: str) -> None:
    behind_its_back(store).execute("DELETE FROM audit")
    audit.head_path(store).unlink()
    problems = verify(store).problems
    assert problems[0] == f"run {made}: the audit does not know it"
    assert len(problems) == 3


def test_a_replaced_and_a_missing_file(store: Address, made: str, tmp_path: Path) -> None:
    (tmp_path / "model" / "weights").write_bytes(b"\x00" * 999 + b"\x01")
    (tmp_path / "data.csv").unlink()
    gone, replaced = verify(store).problems
    assert gone == f"data {tmp_path / 'data.csv'} of run {made}: it is gone"
    assert replaced == f"model {tmp_path / 'model'} of run {made}: it was replaced (its content is another)"


def test_a_file_that_a_later_run_made_anew(store: Address, made: str, tmp_path: Path) -> None:
    (tmp_path / "model" / "weights").write_bytes(b"better")
    with Run("two", {}, store=store, kind="track") as run:
        run.artifact(tmp_path / "model", kind="model")
    flush()
    assert verify(store).problems == []


def test_a_missing_link_and_a_missing_run(store: Address, made: str) -> None:
    connection = opening.connect(store)
    connection.execute("DELETE FROM links WHERE relation = 'makes'")
    (problem,) = verify(store).problems
    assert problem.startswith(f"run {made}: its link is missing (makes model ")
    connection.execute("DELETE FROM runs")
    assert verify(store).problems[0] == f"run {made}: it is in the audit, but missing in the store"


def test_deleting_a_run_leaves_its_audit(store: Address, made: str, tmp_path: Path) -> None:
    assert delete(store, made[:-2], artifacts=True).files == [tmp_path / "model"]
    assert not (tmp_path / "model").exists()
    assert (tmp_path / "data.csv").exists()
    found = verify(store)
    assert (found.problems, found.rows) == ([], 5)
    connection = opening.connect(store)
    for table in ("runs", "series", "points", "links", "artifacts"):
        assert connection.execute(f"SELECT count(*) FROM {table}") == [(0,)]
