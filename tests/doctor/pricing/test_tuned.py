"""What the tuner measured of an input is the price of the finding about it, wherever it is shown."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from stoker.doctor.pricing.prices import price_record
from stoker.doctor.pricing.tuned import price_tuned_input
from stoker.doctor.report import tuning
from stoker.records import Finding, Record
from stoker.tracking.store import record_files
from tests.doctor.pricing.test_recorded_runs import RECORDED, read


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    """A saved run that was starved by the pipeline of `make_dataset` in input.py."""
    monkeypatch.chdir(tmp_path)
    (path,) = (path for path in RECORDED if path.name.startswith("input_starved."))
    made = price_record(read(path))

    def placed(finding: Finding) -> Finding:
        about = "tuner" in finding.detail
        return dataclasses.replace(finding, file="input.py", function="make_dataset") if about else finding

    made = price_record(dataclasses.replace(made, findings=[placed(finding) for finding in made.findings]))
    place = record_files.path_of(made.id)
    place.parent.mkdir(parents=True)
    record_files.write(made, place)
    return made


def starved(record: Record) -> Finding:
    (found,) = [finding for finding in record.findings if finding.function == "make_dataset"]
    return found


def test_the_finding_has_one_price(record: Record) -> None:
    prices = []
    for gain in (1.0, 1.5, 1000.0):
        found = price_tuned_input(Path("input.py"), "make_dataset", gain)
        assert found is not None
        saved = record_files.read(record_files.path_of(record.id))
        assert saved == found[0]
        price = starved(saved).what_if
        assert price is not None
        assert found[1] == [starved(saved)]
        assert starved(saved).detail["tuner"]["speedup"] == [price.low, price.high]
        assert starved(price_record(saved)).what_if == price
        (line,) = tuning.prices(*found)
        assert line.startswith(f"In the run {record.id}: ")
        prices.append(price.speedup)
    # The last measurement counts; a step has other work than waiting, so its gain ends there.
    assert 1.0 <= prices[0] < prices[1] < prices[2] < 1000.0


def test_a_pipeline_that_no_run_is_about_has_no_price(record: Record) -> None:
    assert price_tuned_input(Path("other.py"), "make_dataset", 2.0) is None
    assert price_tuned_input(Path("input.py"), "other", 2.0) is None
    (record_files.path_of(record.id).parent / "zzz.json").write_text("damaged")
    assert price_tuned_input(Path("input.py"), "make_dataset", 2.0) is not None
