"""Events survive their format on disk, and no secret reaches the store, its files or a record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stoker.tracking.store import audit, deleting, opening, spool, surroundings
from stoker.tracking.store.address import Address
from stoker.tracking.store.events import (
    ArtifactColumns,
    ArtifactLinked,
    AuditNoted,
    Batch,
    DamagedBatchError,
    FindingsMeasured,
    LedgerMeasured,
    RunChanged,
    RunDeleted,
    RunsSeen,
    RunStarted,
    ValuesLogged,
    decode_batch,
    decode_event,
    encode_batch,
)
from stoker.tracking.store.tracking import TrackedRun
from stoker.tracking.store.writer import StoreWriter
from tests.support import run_stoker, write_program
from tests.tracking.store.conftest import flush

SECRET = "hunter2hunter2"


def everything(store: Address) -> str:
    """Every cell of every table."""
    connection = opening.connect(store)
    tables = ("runs", "series", "artifacts", "links", "audit", "findings")
    return str([connection.execute(f"SELECT * FROM {table}") for table in tables])


def test_secrets_do_not_reach_the_store(
    store: Address, tmp_path: Path, own_writers: dict[Address, StoreWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [
        "train.py",
        "--token",
        SECRET,
        f"--password={SECRET}",
        "--db",
        f"postgresql://me:{SECRET}@host/x",
    ]
    monkeypatch.setattr("sys.argv", words)
    url = f"https://me:{SECRET}@host/data"
    params = {"api_key": SECRET, "db": {"url": url}, "rate": 0.1}
    monkeypatch.setattr(surroundings, "describe_code", lambda: {"git_diff": f'+password = "{SECRET}"\n'})
    run = TrackedRun(f"from {url}", params, store=store, kind="track")
    run.params(github_token=SECRET)
    run.log(0, loss=1.0)
    finding = {"kind": "k", "code": "c", "file": "f", "line": 1, "source": f'get(token="{SECRET}")'}
    run.put(FindingsMeasured(run.id, [finding]))
    (tmp_path / "model").write_text("x")
    run.artifact(tmp_path / "model", name=f"model from {url}")
    run.finish_with(ValueError(f"refused: {url}"))
    flush()
    deleting.write_now(store, [RunChanged(run.id, {"error": url}), audit.note("seen", run.id, {"at": url})])
    whole = everything(store)
    assert "rate" in whole
    assert "get(token" in whole
    assert SECRET not in whole


def test_secrets_do_not_reach_the_spool(store: Address, own_writers: dict[Address, StoreWriter]) -> None:
    unreachable = Address(url="postgresql://nobody@127.0.0.1:1/none")
    TrackedRun("x", {"password": SECRET}, store=unreachable, kind="track").flush()
    (path,) = [path for place in spool.list_directories(unreachable) for path in place.glob("*.jsonl")]
    assert "password" in path.read_text()
    assert SECRET not in path.read_text()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a program that was given a secret ran under `stoker run`; it got that secret as it was typed."""
    monkeypatch.delenv("STOKER_STORE")
    write_program(tmp_path, "import sys\nassert sys.argv[2] == sys.argv[3][11:]\n")
    outcome = run_stoker(tmp_path, "train.py", "--token", SECRET, f"--password={SECRET}")
    assert outcome.code == 0, outcome.stderr
    assert SECRET not in outcome.stderr
    return tmp_path


def test_a_record_has_no_secrets_and_everything_is_its_owners(measured: Path) -> None:
    files = [path for path in (measured / ".stoker").rglob("*") if path.is_file()]
    assert len(files) >= 3
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path
        assert path.stat().st_mode & 0o777 == 0o600, path
    for path in (measured / ".stoker", measured / ".stoker" / "runs"):
        assert path.stat().st_mode & 0o777 == 0o700
    (record,) = (measured / ".stoker" / "runs").glob("*.json")
    assert json.loads(record.read_text())["argv"] == ["--token", "***", "--password=***"]


@pytest.mark.parametrize(
    "value",
    [
        None, [], 3, ["values"], ["values", "r", "1", 0.0, {}], ["run", 1, {}], ["_audit", "r", {}], ["__class__"],
        ["seen", "r", 0.0], ["values", "r", 1, 0.0, {"loss": "high"}], ["ledger", "r", {"input": None}],
        ["delete", "r", "s"], {"run": 1},
    ],
)  # fmt: skip
def test_anything_but_an_event_is_refused(value: object) -> None:
    with pytest.raises(DamagedBatchError):
        decode_event(value)


def test_events_are_decoded_as_they_were_encoded() -> None:
    artifact = ArtifactColumns(hash="h", kind="data", name="n", size=None, path="", time=1.0)
    batch = Batch(
        "w",
        3,
        [
            RunStarted("r", {"name": "x"}),
            RunChanged("r", {"state": "finished"}),
            ValuesLogged("r", 1, 0, {"loss": 1.0}),
            LedgerMeasured("r", {"input": 1.0}),
            FindingsMeasured("r", [{"kind": "k"}]),
            ArtifactLinked("r", "uses", artifact),
            AuditNoted(1.0, "e", None, {}),
            RunsSeen(["r"], 2.0),
            RunDeleted("r"),
        ],
    )
    decoded = decode_batch(encode_batch(batch).encode())
    assert decoded == batch
    assert [type(event) for event in decoded.events] == [type(event) for event in batch.events]
