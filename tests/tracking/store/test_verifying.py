"""What was done to the audit, to a run, a link or a file behind the store's back is named."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from stoker import signing
from stoker.tracking.store import audit, fingerprints, heads, opening, spool
from stoker.tracking.store.address import Address
from stoker.tracking.store.connections import Connection, StoreError
from stoker.tracking.store.deleting import delete, write_now
from stoker.tracking.store.events import Batch, LedgerMeasured, RunChanged, ValuesLogged
from stoker.tracking.store.queries import open_reader
from stoker.tracking.store.tracking import TrackedRun
from stoker.tracking.store.verifying import Anchor, verify
from stoker.tracking.store.writer import StoreWriter
from tests.tracking.store.conftest import flush


@pytest.fixture
def made(store: Address, tmp_path: Path, own_writers: dict[Address, StoreWriter]) -> str:
    """A run that has used a file and made another; its id."""
    (tmp_path / "data.csv").write_text("1,2\n")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_bytes(b"\x00" * 1000)
    with TrackedRun("one", {}, store=store, kind="track") as run:
        for step in range(4):
            run.log(step, loss=1 / (step + 1))
        run.uses(tmp_path / "data.csv")
        run.artifact(tmp_path / "model", kind="model")
    flush()
    found = verify(store)
    assert (found.problems, found.files, found.sealed, found.rows) == ([], 2, 1, 5)
    return run.id


@contextmanager
def behind_its_back(store: Address) -> Iterator[Connection]:
    """A connection of somebody who may do everything: gets around the triggers, and puts them back."""
    connection = opening.connect(store)
    if connection.dialect == "postgresql":
        connection.execute("ALTER TABLE audit DISABLE TRIGGER ALL")
        yield connection
        connection.execute("ALTER TABLE audit ENABLE TRIGGER ALL")
    else:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, text in triggers:
            connection.execute(text)
    connection.close()


def hash_anew(connection: Connection) -> None:
    """Make the whole chain fit what its rows say now."""
    previous = audit.ORIGIN
    for row in connection.execute("SELECT seq, time, actor, event, run, details FROM audit ORDER BY seq"):
        sealed = audit.hash_row(*[*row, previous])
        connection.execute(
            "UPDATE audit SET previous = ?, hash = ? WHERE seq = ?", (previous, sealed, row[0])
        )
        previous = sealed


def head_of(store: Address) -> Anchor:
    with open_reader(store) as reader:
        found = reader.audit_head()
    assert found is not None
    return Anchor(heads.Head.make_now(*found, str(store)), "mine")


def test_an_edited_row(store: Address, made: str) -> None:
    with behind_its_back(store) as connection:
        connection.execute("UPDATE audit SET actor = 'somebody' WHERE seq = 2")
    (problem,) = verify(store).problems
    assert problem == f"audit: row 2 (artifact, run {made}) was changed"


def test_an_edited_row_with_a_new_hash(store: Address, made: str) -> None:
    with behind_its_back(store) as connection:
        (row,) = connection.execute(
            "SELECT seq, time, actor, event, run, details, previous FROM audit WHERE seq = 2"
        )
        forged = (*row[:2], "somebody", *row[3:6])
        sealed = audit.hash_row(*[*forged, row[6]])
        connection.execute("UPDATE audit SET actor = 'somebody', hash = ? WHERE seq = 2", (sealed,))
    (problem,) = verify(store).problems
    assert problem == "audit: row 3 does not follow row 2: one of them was changed"


def test_a_row_that_an_insert_replaced(store: Address, made: str) -> None:
    connection = opening.connect(store)
    copy = "SELECT seq, time, 'somebody', event, run, details, previous, hash FROM audit WHERE seq = 2"
    if connection.dialect == "sqlite":
        # Its triggers see no update and no deletion here.
        connection.execute(f"INSERT OR REPLACE INTO audit {copy}")
        (problem,) = verify(store).problems
        assert problem == f"audit: row 2 (artifact, run {made}) was changed"
    else:
        insert = f"INSERT INTO audit {copy} ON CONFLICT (seq) DO UPDATE SET actor = EXCLUDED.actor"
        with pytest.raises(StoreError, match="append-only"):
            connection.execute(insert)
        assert verify(store).problems == []
    connection.close()


def test_rows_that_make_no_sense(store: Address, made: str) -> None:
    with behind_its_back(store) as connection:
        connection.execute("UPDATE audit SET details = '[' WHERE seq = 2")
    assert f"audit: row 2 (artifact, run {made}) was changed" in verify(store).problems


def test_a_missing_row(store: Address, made: str) -> None:
    with behind_its_back(store) as connection:
        connection.execute("DELETE FROM audit WHERE seq = 2")
    problems = verify(store).problems
    assert problems[0] == "audit: row 2 is missing"
    assert "its link is not in the audit" in problems[1]


def test_a_chain_that_was_cut(store: Address, made: str) -> None:
    with behind_its_back(store) as connection:
        connection.execute("DELETE FROM audit WHERE seq = 5")
    (problem,) = verify(store).problems
    place = audit.head_path(store)
    assert problem == f"audit: it ends at row 4, but had a row 5 ({place}): the end was cut off"


def test_a_cut_chain_whose_head_was_deleted_too(store: Address, made: str) -> None:
    mine = head_of(store)
    with behind_its_back(store) as connection:
        connection.execute("DELETE FROM audit WHERE seq = 5")
    audit.head_path(store).unlink()
    alone = verify(store)
    assert "no head is kept beside the store" in str(alone.problems if store.path else alone.notes)
    assert verify(store, mine).problems == [
        "audit: it ends at row 4, but mine has seen row 5: the end was cut off"
    ]


def test_a_store_that_was_emptied_altogether(store: Address, made: str, tmp_path: Path) -> None:
    mine = head_of(store)
    with behind_its_back(store) as connection:
        for table in ("audit", "runs", "links", "artifacts", "series", "points"):
            connection.execute(f"DELETE FROM {table}")
    audit.head_path(store).unlink()
    assert verify(store).problems == []
    assert verify(store, mine).problems == [
        "audit: it ends at row 0, but mine has seen row 5: the end was cut off"
    ]


def test_a_chain_that_was_emptied_without_a_trace_beside_it(store: Address, made: str) -> None:
    with behind_its_back(store) as connection:
        connection.execute("DELETE FROM audit")
    audit.head_path(store).unlink()
    problems = verify(store).problems
    assert problems[0] == f"run {made}: it is in the store but not in the audit"
    assert len(problems) == 3


def test_a_chain_that_was_made_anew_and_added_to(store: Address, made: str, tmp_path: Path) -> None:
    """A model is replaced, every hash made to fit, and a row added, as by the next run."""
    mine = head_of(store)
    (tmp_path / "model" / "weights").write_bytes(b"evil")
    forged = fingerprints.hash_path(tmp_path / "model").hash
    with behind_its_back(store) as connection:
        ((old,),) = connection.execute("SELECT hash FROM artifacts WHERE kind = 'model'")
        connection.execute("UPDATE artifacts SET hash = ? WHERE kind = 'model'", (forged,))
        connection.execute("UPDATE audit SET details = replace(details, ?, ?)", (old, forged))
        hash_anew(connection)
    with TrackedRun("next", {}, store=store, kind="track"):
        pass
    flush()
    place = audit.head_path(store)
    beside = f"audit: row 5 is not the one that was written ({place}): the chain was rebuilt"
    assert verify(store).problems == [beside]
    anchored = "audit: row 5 is not the one that mine has seen: the chain was rebuilt"
    assert verify(store, mine).problems == [beside, anchored]
    place.unlink()
    assert verify(store, mine).problems == [anchored]


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("UPDATE points SET value = 0.9 WHERE n = 1", "values"),
        ("UPDATE points SET step = 7 WHERE n = 1", "values"),
        ("DELETE FROM points WHERE n = 2", "values"),
        ("UPDATE series SET last = 0.0", "values"),
        ("UPDATE runs SET parameters = '{\"rate\":2}'", "row"),
        ("UPDATE runs SET state = 'failed'", "row"),
        ("UPDATE runs SET git_commit = 'x'", "row"),
        ("INSERT INTO ledger (run, account, seconds) SELECT id, 'input', 1.0 FROM runs", "ledger"),
    ],
)
def test_an_edited_run(store: Address, made: str, statement: str, part: str) -> None:
    mine = head_of(store)
    connection = opening.connect(store)
    connection.execute(statement)
    edited = f"run {made}: its {part} changed after it was sealed"
    assert verify(store).problems == [edited]
    # A seal that is added to cover it up is a second one.
    connection.close()
    write_now(store, [LedgerMeasured(made, {"input": 2.0})])
    assert verify(store).problems == []
    (resealed,) = verify(store, mine).problems
    assert resealed == f"run {made}: mine has seen it sealed (row 5); row 6 seals different content"


def test_dropped_changed_and_foreign_triggers(store: Address, made: str) -> None:
    connection = opening.connect(store)
    if connection.dialect == "sqlite":
        connection.execute("DROP TRIGGER audit_no_update")
        connection.execute("DROP TRIGGER audit_no_delete")
        connection.execute("CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit WHEN 0 BEGIN SELECT 1; END")
        connection.execute("CREATE TRIGGER mine AFTER INSERT ON runs BEGIN SELECT 1; END")
        assert verify(store).problems == [
            "audit: the trigger audit_no_update is missing: rows can be changed",
            "store: the trigger mine is not Stoker's",
            "audit: the trigger audit_no_delete was changed",
        ]
        return
    connection.execute("ALTER TABLE audit DISABLE TRIGGER ALL")
    assert verify(store).problems == ["audit: the trigger audit_no_change is switched off"]
    connection.execute("ALTER TABLE audit ENABLE TRIGGER ALL")
    body = "CREATE OR REPLACE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
    connection.execute(body + "$$ BEGIN RETURN NEW; END $$")
    assert verify(store).problems == ["audit: the trigger audit_no_change was changed"]
    connection.execute("DROP TRIGGER audit_no_change ON audit")
    connection.execute("CREATE TRIGGER mine BEFORE INSERT ON audit EXECUTE FUNCTION audit_is_append_only()")
    assert verify(store).problems == [
        "audit: the trigger audit_no_change is missing: rows can be changed",
        "store: the trigger mine is not Stoker's",
    ]


def test_a_run_that_another_process_has_ended_is_sealed(
    store: Address, own_writers: dict[Address, StoreWriter]
) -> None:
    """Then its points are read from the store; values that come late add a seal."""
    run = TrackedRun("spooled", {}, store=store, kind="track")
    for step in range(100):
        run.log(step, loss=[math.nan, math.inf, -0.0, 0.1][step % 4])
    run.flush()
    left = spool.Spool(store, "1-gone")
    left.append(Batch("1-gone", 1, [ValuesLogged(run.id, 100, 1, {"loss": 5})]))
    left.append(Batch("1-gone", 2, [RunChanged(run.id, {"state": "finished", "ended": 5.0})]))
    left.append(Batch("1-gone", 3, [ValuesLogged(run.id, 101, 1.0, {"loss": 5.0, "other": 1.0})]))
    left.release()
    found = verify(store)
    assert (found.problems, found.sealed) == ([], 1)


def test_a_run_that_an_earlier_stoker_has_ended(store: Address, made: str) -> None:
    """Without a seal, only its state is known."""
    with behind_its_back(store) as connection:
        connection.execute("DELETE FROM audit WHERE event = 'run sealed'")
    audit.head_path(store).write_text(json.dumps({"store": "x", **end_of(store)}))
    found = verify(store)
    assert (found.problems, found.sealed) == ([], 0)
    assert "1 run has no seal" in found.notes[0]
    opening.connect(store).execute("UPDATE runs SET state = 'failed'")
    assert verify(store).problems == [f"run {made}: it ended as 'finished', but the store says 'failed'"]


def end_of(store: Address) -> dict[str, object]:
    head = head_of(store).head
    return {"seq": head.seq, "hash": head.hash}


def test_a_head_is_signed_with_a_key_outside_of_the_store(store: Address, made: str, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    public = signing.generate_key(tmp_path / "key")
    other = signing.generate_key(tmp_path / "other")
    head = heads.parse(head_of(store).head.sign(str(tmp_path / "key")).to_json())
    assert verify(store, Anchor(head, "mine", public)).problems == []
    for forged in (head, replace(head, seq=4), replace(head, store="x"), replace(head, signature="")):
        key = other if forged is head else public
        assert f"head: mine is not signed by {key}" in verify(store, Anchor(forged, "mine", key)).problems


def test_a_replaced_and_a_missing_file(store: Address, made: str, tmp_path: Path) -> None:
    (tmp_path / "model" / "weights").write_bytes(b"\x00" * 999 + b"\x01")
    (tmp_path / "data.csv").unlink()
    gone, replaced = verify(store).problems
    assert gone == f"data {tmp_path / 'data.csv'} of run {made}: it is gone"
    assert replaced == f"model {tmp_path / 'model'} of run {made}: it was replaced (its content differs)"


def test_a_file_that_a_later_run_made_anew(store: Address, made: str, tmp_path: Path) -> None:
    (tmp_path / "model" / "weights").write_bytes(b"better")
    with TrackedRun("two", {}, store=store, kind="track") as run:
        run.artifact(tmp_path / "model", kind="model")
    flush()
    assert verify(store).problems == []


def test_a_clock_that_was_set_back(store: Address, made: str, tmp_path: Path) -> None:
    """The order is that of the audit."""
    (tmp_path / "model" / "weights").write_bytes(b"better")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", lambda: 1e9)
        with TrackedRun("two", {}, store=store, kind="track") as run:
            run.artifact(tmp_path / "model", kind="model")
        flush()
    assert verify(store).problems == []


def test_content_that_comes_back(store: Address, made: str, tmp_path: Path) -> None:
    for content in (b"better", b"\x00" * 1000):
        (tmp_path / "model" / "weights").write_bytes(content)
        with TrackedRun("again", {}, store=store, kind="track") as run:
            run.artifact(tmp_path / "model", kind="model")
        flush()
    assert verify(store).problems == []


def test_a_missing_link_and_a_missing_run(store: Address, made: str) -> None:
    connection = opening.connect(store)
    connection.execute("DELETE FROM links WHERE relation = 'makes'")
    (problem,) = verify(store).problems
    assert problem.startswith(f"run {made}: its link is missing (makes model ")
    connection.execute("DELETE FROM runs")
    assert verify(store).problems[0] == f"run {made}: it is in the audit but not in the store"


def test_deleting_a_run_leaves_its_audit(store: Address, made: str, tmp_path: Path) -> None:
    assert delete(store, made[:-2], artifacts=True).files == [tmp_path / "model"]
    assert not (tmp_path / "model").exists()
    assert (tmp_path / "data.csv").exists()
    found = verify(store)
    assert (found.problems, found.rows) == ([], 6)
    connection = opening.connect(store)
    for table in ("runs", "series", "points", "links", "artifacts"):
        assert connection.execute(f"SELECT count(*) FROM {table}") == [(0,)]
