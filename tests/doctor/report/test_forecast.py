"""What `stoker memory` prints: the need, and what fits if a memory was named."""

from __future__ import annotations

import dataclasses

import pytest

from stoker.doctor.forecast.answer import Forecast, MeasuredBatch
from stoker.doctor.forecast.child_request import BatchPlace
from stoker.doctor.report.forecast import show

MIB = 2**20
FORECAST = Forecast(
    place=BatchPlace("fit", 64, file="train.py", line=8),
    batch=64,
    memory_bytes=None,
    measured=[MeasuredBatch(2, 3 * MIB), MeasuredBatch(4, 4 * MIB)],
    peak_bytes=14 * MIB,
    tensor_bytes=13 * MIB,
    largest_batch=None,
    uncertainty=0.0,
    owners=[],
    owners_at_largest=[],
)


def test_without_a_memory_it_names_the_option_that_answers_what_fits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    show(FORECAST)
    said = capsys.readouterr().out
    assert "A batch of 64 needs 14.0 MiB" in said
    assert "Which batch fits? Name the memory: --device-memory 16GiB, or --device-profile t4." in said


def test_with_a_memory_it_says_what_fits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    show(dataclasses.replace(FORECAST, memory_bytes=16 * MIB, largest_batch=70))
    said = capsys.readouterr().out
    assert "It fits into 16.0 MiB. The largest batch that fits has 70 rows." in said
    assert "Which batch fits?" not in said
