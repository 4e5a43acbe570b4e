"""What the tuner would gain, by recorded runs that were starved: rates that fit together, and the words for them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from stoker.doctor.pricing import prices
from stoker.doctor.report.words import evidence
from stoker.records import Finding
from tests.doctor.pricing.test_recorded_runs import RECORDED, read


def starved(name: str) -> Finding:
    """The finding of a recorded run that the tuner has an answer to."""
    (path,) = (path for path in RECORDED if path.name.startswith(f"{name}."))
    return next(f for f in prices.price_record(read(path)).findings if "tuner" in f.detail)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("python_input_pipeline", "generator drained in chunks"),
        ("map_before_batch", "map moved behind batch"),
        ("missing_prefetch", "prefetch"),
        ("input_starved", "cache"),
    ],
)
def test_rates_fit_together(name: str, change: str) -> None:
    finding = starved(name)
    gain = finding.detail["tuner"]
    assert gain["change"] == change
    worst, best = gain["could_give_per_s"]
    assert 0 < gain["gives_per_s"] <= worst * 1.001 <= best * 1.001
    assert 1 <= gain["speedup"][0] <= gain["speedup"][1]
    assert gain["assumes"]


def test_it_is_said_in_rates_and_not_as_a_second_price() -> None:
    said = evidence(starved("python_input_pipeline"))
    assert "/s with the tuner's “generator drained in chunks” (stoker.tune(ds) measures it)" in said
    assert re.search(r"\d+x", said) is None


def test_a_cache_is_not_offered_where_there_is_one() -> None:
    (path,) = (path for path in RECORDED if path.name.startswith("input_starved."))
    record = read(path)
    about = {finding.kind for finding in prices.price_record(record).findings if "tuner" in finding.detail}
    assert about == {"input-starved"}
    cached = [
        replace(finding, detail={**finding.detail, "cached": True}) if finding.kind in about else finding
        for finding in record.findings
    ]
    for finding in prices.price_record(replace(record, findings=cached)).findings:
        assert "tuner" not in finding.detail


@pytest.mark.slow
def test_runs_that_were_not_starved_say_nothing_of_it() -> None:
    for path in RECORDED:
        for finding in prices.price_record(read(path)).findings:
            assert "tuner" not in finding.detail or finding.kind in (
                "missing-prefetch",
                "map-without-parallel-calls",
                "map-before-batch",
                "python-input-pipeline",
                "input-starved",
            )
