"""What is read back, on both databases."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from stoker.cli import main
from stoker.errors import RecordError
from stoker.tracking.store import address, opening, queries
from stoker.tracking.store.address import Address
from stoker.tracking.store.audit import read_kept_head
from stoker.tracking.store.deleting import write_now
from stoker.tracking.store.events import FindingsMeasured, LedgerMeasured, ValuesLogged
from stoker.tracking.store.provenance import read_provenance
from stoker.tracking.store.tracking import TrackedRun
from stoker.tracking.store.writer import StoreWriter
from tests.samples import sample_record
from tests.tracking.store.conftest import flush


def test_a_long_series_is_thinned_to_its_extremes(store: Address) -> None:
    entries = [
        ValuesLogged("r", step, 0.0, {"loss": 50.0 if step == 3141 else step % 7}) for step in range(10_000)
    ]
    write_now(store, [*entries, ValuesLogged("r", 10_000, 0.0, {"loss": math.nan})])
    with queries.open_reader(store) as reader:
        points = reader.thin_points("r", "loss", 200)
        assert 150 <= len(points) <= 210
        assert [step for step, _, _ in points] == sorted(step for step, _, _ in points)
        assert max(value for _, _, value in points if value == value) == 50.0
        assert len(reader.thin_points("r", "loss", 20_000)) == 10_001
        assert reader.thin_points("r", "nothere", 10) == []


def test_prices_are_summed_and_the_pulse_changes(
    store: Address, own_writers: dict[Address, StoreWriter]
) -> None:
    findings = sample_record().to_json()["findings"]
    ids = []
    for _ in range(2):
        with TrackedRun("measured", {}, store=store, kind="run") as run:
            run.put(FindingsMeasured(run.id, findings), LedgerMeasured(run.id, {"sync": 1.5, "input": 0.5}))
            ids.append(run.id)
    flush()
    with queries.open_reader(store) as reader:
        before, own = reader.pulse(), reader.pulse(ids[0])
        line = reader.prices()[0]
        assert (line.runs, line.line) == (2, findings[0]["line"])
        assert line.seconds == pytest.approx(2 * (findings[0].get("lost_s") or findings[0]["seconds"]))
        assert set(reader.first_findings()) == set(ids)
        assert list(reader.ledger(ids[0])) == ["sync", "input"]
    write_now(store, [ValuesLogged(ids[0], 1, 0.0, {"loss": 1.0})])
    with queries.open_reader(store) as reader:
        assert reader.pulse() != before
        assert reader.pulse(ids[0]) != own


def test_runs_are_found_by_the_beginning_of_their_id(
    store: Address, own_writers: dict[Address, StoreWriter]
) -> None:
    with TrackedRun("outer", {}, store=store, kind="track", run_id="ab_1") as outer:
        for name in ("abc1", "abc2"):
            TrackedRun("inner", {}, store=store, kind="track", run_id=name).finish()
    flush()
    with queries.open_reader(store) as reader:
        assert reader.resolve("ab_") == "ab_1"
        assert reader.resolve("latest") == reader.resolve(None) == "abc2"
        assert reader.resolve("abc1") == "abc1"
        assert reader.children(outer.id, 10) == ["abc1", "abc2"]
        with pytest.raises(RecordError, match="2 runs whose ids begin with 'abc'"):
            reader.resolve("abc")
        with pytest.raises(RecordError, match="no run"):
            reader.resolve("z")


def test_a_run_that_was_killed_is_lost(store: Address, own_writers: dict[Address, StoreWriter]) -> None:
    run = TrackedRun("killed", {}, store=store, kind="track")
    flush()
    opening.connect(store).execute("UPDATE runs SET seen = seen - 100")
    with queries.open_reader(store) as reader:
        (row,) = reader.runs()
        assert (row.id, row.state) == (run.id, "lost")
    run.finish()


def test_what_a_model_carries_with_it(
    store: Address, own_writers: dict[Address, StoreWriter], tmp_path: Path
) -> None:
    (tmp_path / "data.csv").write_text("1\n")
    with TrackedRun("one", {}, store=store, kind="train") as run:
        digest = run.uses(tmp_path / "data.csv")
    flush()
    made = read_provenance(store, run.id)
    assert made["run"] == run.id
    assert [one["hash"] for one in made["data"]] == [digest]
    kept = read_kept_head(store)
    assert kept is not None
    assert (made["audit"]["seq"], made["audit"]["hash"]) == (kept.seq, kept.hash)


def test_a_damaged_run_does_not_hide_the_others(
    tmp_path: Path,
    own_writers: dict[Address, StoreWriter],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As somebody with the file can damage it: SQLite takes anything anywhere."""
    monkeypatch.setenv("STOKER_STORE", f"sqlite:///{tmp_path / 'stoker.db'}")
    store = address.find()
    assert store is not None
    ids = []
    for name in ("good", "bad"):
        with TrackedRun(name, {"rate": 1}, store=store, kind="track") as run:
            run.log(0, loss=1.0)
        ids.append(run.id)
    run.flush()
    connection = opening.connect(store)
    for damage in (
        "parameters = '[', arguments = '{}', machine = '3', versions = 'null'",
        "parameters = '[1]', arguments = '[1, {}]', started = 'x', state = 5, steps_per_s = 'y', ended = 'z'",
    ):
        connection.execute(f"UPDATE runs SET {damage} WHERE id = '{ids[1]}'")
        connection.execute("UPDATE points SET value = 'high' WHERE series = 2")
        for words in (["runs"], ["runs", "--json"], ["runs", "show", ids[1]], ["runs", "diff", *ids]):
            assert main(words) == 0, words
            assert ids[0] in capsys.readouterr().out or words[1:2] == ["show"]
        assert main(["runs", "verify"]) == 1
        assert "no longer numbers" in capsys.readouterr().out
    assert main(["runs", "export", "--table", str(tmp_path / "points.csv")]) == 0
