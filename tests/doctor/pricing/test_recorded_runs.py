"""Real runs, kept: the replay of each, unchanged, takes what its steps took, and no price breaks Amdahl's law.

`recorded/` holds records of `stoker run` on programs of different style (the examples, and small ones that were priced
wrongly), made on a machine busy with other work; of the windows only the last three.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from stoker.doctor.pricing import prices
from stoker.doctor.pricing import program as programs
from stoker.doctor.replay.simulation import Draw, seconds_per_step
from stoker.records import Record

RECORDED = sorted(Path(__file__).with_name("recorded").glob("*.json.gz"))


def read(path: Path) -> Record:
    return Record.from_json(json.loads(gzip.decompress(path.read_bytes())))


def test_there_are_a_dozen() -> None:
    assert len(RECORDED) >= 12


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.partition(".")[0])
def test_an_unchanged_run_replays_to_what_it_took(path: Path) -> None:
    record = read(path)
    phase = record.tables.stepping[0]
    run = programs.of(record)
    assert run is not None
    measured = phase.seconds / phase.steps
    assert seconds_per_step(run, Draw()) == pytest.approx(measured, rel=0.005)
    # And not because much of it was left unexplained.
    assert run.unexplained < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.partition(".")[0])
def test_no_price_is_above_what_the_finding_holds_and_frees(path: Path) -> None:
    record = read(path)
    total = record.tables.stepping[0].seconds
    done = prices.price_record(record)
    for finding in done.findings:
        price = finding.what_if
        if price is None:
            continue
        assert price.share is not None
        # What a finding took may lie partly before the first step's end: its share cannot be more than all of it.
        took = max(finding.seconds or 0.0, finding.lost_s or 0.0) / total
        assert price.share <= took + 0.02
        # Both are named to four digits.
        left = 1 - price.share - 0.00005 - sum(freed + 0.00005 for freed in (price.frees or {}).values())
        assert 1 <= price.low <= price.speedup <= price.high
        # What a finding holds is measured, too, so the bounds of a measured price also hold the error of that.
        most = price.speedup if price.basis == "measured" else price.high
        assert left <= 0 or most <= 1 / left + 0.01


def price(name: str, kind: str) -> list[float]:
    """The speed-ups promised for a kind."""
    done = prices.price_record(read(Path(__file__).with_name("recorded") / f"{name}.json.gz"))
    return [f.what_if.speedup for f in done.findings if f.kind == kind and f.what_if]


@pytest.mark.slow
def test_prices_that_were_impossible_or_missing() -> None:
    # Two lines of 45 % each were promised 40x each.
    assert price("predict_price", "predict-in-loop") == pytest.approx([2.2, 2.2], rel=0.15)
    # A device 3 % busy, calls that take 80 % of the step, and 1.00x.
    assert price("gpu_prefetch", "launch-bound")[0] > 4
    # 0.5 % busy and eager ops that take 94 % of the step, and 1.7x: a wait of 9 us stood for 51 ms of device work.
    assert price("gpu_sync_mid", "eager-train-step")[0] > 8
    # A loop that only predicts: one call for all rows was measured to be 57 times as fast.
    assert price("predict_in_loop", "predict-in-loop")[0] == pytest.approx(57, rel=0.2)
