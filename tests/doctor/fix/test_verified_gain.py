"""What `stoker fix --verify` found is the price of a finding, wherever it is shown."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from stoker.cli import main
from stoker.doctor.check.rule import Problem
from stoker.doctor.fix.plan import FileChange
from stoker.doctor.fix.verified import keep_gain
from stoker.doctor.pricing.prices import price_record
from stoker.doctor.report.line_prices import read_prices
from stoker.records import Record
from stoker.tracking.store import record_files
from tests.cli.test_whatif import saving_and_copying


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    """A run with two priced findings: saves at train.py:42, and copies at data/feed.py:7."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    made = price_record(saving_and_copying())
    path = record_files.path_of(made.id)
    path.parent.mkdir(parents=True)
    record_files.write(made, path)
    return made


def change(file: str, kind: str, first: int, last: int) -> FileChange:
    problem = Problem(kind, "STK", str(Path(file).resolve()), first, 1, last, "", "warning")
    return FileChange(str(Path(file).resolve()), b"", b"", (problem,))


def test_the_price_of_one_repair_is_what_was_measured_everywhere(
    record: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {finding.kind: finding.what_if for finding in record.findings}
    keep_gain(record.id, [change("train.py", "checkpoint-in-loop", 41, 43)], 2.7182)
    kept = record_files.read(record_files.path_of(record.id))
    prices = {finding.kind: finding.what_if for finding in kept.findings}
    price = prices["checkpoint-in-loop"]
    assert price is not None
    assert (price.speedup, price.basis) == (2.718, "measured")
    assert price.low < price.speedup < price.high
    assert prices["numpy-feed-in-loop"] == before["numpy-feed-in-loop"]
    # Priced anew, as `stoker price` and `stoker whatif` do, it is still that.
    again = {finding.kind: finding.what_if for finding in price_record(kept).findings}
    assert again == prices
    assert main(["whatif"]) == 0
    assert "without checkpoint-in-loop train.py:42 2.7x (2.5-2.9) measured" in " ".join(
        capsys.readouterr().out.split()
    )
    assert [
        row.speedup
        for row in read_prices([Path(".stoker/runs")])
        ._by_kind[str(Path("train.py").resolve()), "checkpoint-in-loop"]
        .values()
    ] == [2.718]
    assert kept.what_if is not None
    assert kept.what_if.all is not None
    assert kept.what_if.all.speedup >= 2.718


def test_of_several_repairs_the_price_of_all_is_what_was_measured(record: Record) -> None:
    changes = [
        change("train.py", "checkpoint-in-loop", 42, 42),
        change("data/feed.py", "numpy-feed-in-loop", 7, 7),
        change("data/feed.py", "sync-in-loop", 7, 7),
    ]
    keep_gain(record.id, changes, 5.0)
    kept = record_files.read(record_files.path_of(record.id))
    assert kept.findings == record.findings
    assert kept.what_if is not None
    assert kept.what_if.all is not None
    assert (kept.what_if.all.speedup, kept.what_if.all.basis) == (5.0, "measured")
    anew = price_record(kept).what_if
    assert anew is not None
    assert anew.all == kept.what_if.all


def test_what_was_repaired_elsewhere_changes_no_price(record: Record) -> None:
    path = record_files.path_of(record.id)
    keep_gain(
        record.id,
        [change("train.py", "sync-in-loop", 42, 42), change("other.py", "checkpoint-in-loop", 42, 42)],
        3.0,
    )
    assert record_files.read(path) == record


def test_less_than_one_is_no_gain(record: Record) -> None:
    keep_gain(record.id, [change("train.py", "checkpoint-in-loop", 42, 42)], 0.95)
    kept = record_files.read(record_files.path_of(record.id))
    (price,) = [f.what_if for f in kept.findings if f.kind == "checkpoint-in-loop"]
    assert price is not None
    assert (price.low, price.speedup) == (1.0, 1.0)
    assert dataclasses.asdict(price)["high"] < 1.1
