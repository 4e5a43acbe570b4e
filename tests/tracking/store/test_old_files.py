"""Stores and spools that an earlier Stoker wrote are read, verified and continued (`old_files/make.py` made them)."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

from stoker.cli import main
from stoker.tracking.store import heads, queries, spool
from stoker.tracking.store.address import Address
from stoker.tracking.store.tracking import TrackedRun
from stoker.tracking.store.verifying import Anchor, verify
from stoker.tracking.store.writer import StoreWriter
from tests.tracking.store.conftest import flush

OLD = Path(__file__).parent / "old_files"
LOGGED = [0.5, math.nan, math.inf, -math.inf, 0.0, 0.1 + 0.2]


@pytest.fixture
def old_store(store: Address) -> Address:
    """A copy of the old store, in a file or in a database."""
    if store.path is not None:
        store.path.parent.mkdir(parents=True)
        shutil.copy(OLD / "stoker.db", store.path)
        return store
    import psycopg

    with psycopg.connect(store.url, autocommit=True) as connection:
        connection.execute((OLD / "postgresql.sql").read_bytes())
    return store


def test_an_old_store_is_read(old_store: Address) -> None:
    with queries.open_reader(old_store) as reader:
        rows = {row.id: row for row in reader.runs()}
        assert {run: row.state for run, row in rows.items()} == {"old-1": "finished", "old-2": "failed"}
        points = reader.points("old-1", "loss")
        assert repr([abs(v) if v == 0 else v for _, _, v in points]) == repr(LOGGED)
        assert reader.ledger("old-1") == {"sync": 1.5, "input": 0.5}
        assert [finding["line"] for finding in reader.findings("old-1")] == [42]
        assert [link.name for link in reader.artifacts("old-1")] == ["numbers"]
        assert reader.children("old-1", 10) == ["old-2"]


def test_the_seals_of_an_old_store_hold(old_store: Address) -> None:
    """Every hash of it is computed today as it was then."""
    if old_store.path is not None:
        found = verify(old_store, Anchor(heads.read(str(OLD / "head.json")), "head.json"))
    else:
        found = verify(old_store)
    assert (found.problems, found.rows, found.sealed) == ([], 11, 2)


def test_an_old_store_is_continued(old_store: Address, own_writers: dict[Address, StoreWriter]) -> None:
    with TrackedRun("new", {}, store=old_store, kind="track") as run:
        run.log(0, loss=1.0)
    flush()
    found = verify(old_store)
    assert (found.problems, found.rows, found.sealed) == ([], 14, 3)


def test_an_old_spool_is_written_to_the_store(store: Address) -> None:
    place = spool.list_directories(store)[0]
    place.mkdir(parents=True)
    shutil.copy(OLD / "spool.jsonl", place / f"{store.mark}-1-old.jsonl")
    with queries.open_reader(store) as reader:
        (row,) = reader.runs()
        assert (row.id, row.state, row.seconds) == ("spooled-1", "finished", 5.0)
        assert repr(reader.points(row.id, "loss")) == "[(0, 100.5, 1.0), (1, 101.0, inf)]"
        assert repr(reader.points(row.id, "accuracy")) == "[(0, 100.5, nan)]"
        assert reader.ledger(row.id) == {"sync": 2.0, "input": 1.0}
        assert [finding["kind"] for finding in reader.findings(row.id)] == ["sync-in-loop"]
        assert [(link.relation, link.hash) for link in reader.artifacts()] == [("uses", "sha256:ab")]
    assert list(place.iterdir()) == []
    found = verify(store)
    assert (found.problems, found.rows, found.sealed) == ([], 7, 1)


def test_an_old_store_is_listed_as_it_was(
    old_store: Address, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STOKER_STORE", old_store.url or str(old_store))
    assert main(["runs", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    (old,) = [row for row in rows if row["id"] == "old-1"]
    assert (old["params.rate"], old["params.layers"], old["metrics.odd näme"]) == (0.1, [1, 2], 5.0)
    (failed,) = [row for row in rows if row["id"] == "old-2"]
    assert (failed["error"], failed["steps"], failed["parent"]) == ("ValueError: enough", 3, "old-1")
