"""A program measured at small batches on the software GPU: what it needs at a larger one, and with a change."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from stoker.doctor.forecast.batch_name import place_from_name
from stoker.doctor.forecast.starting import ProgramRunner
from stoker.doctor.measure.launch import Target
from tests.support import no_software_gpu, run

pytest.importorskip("tensorflow")
if missing := no_software_gpu():
    pytest.skip(missing, allow_module_level=True)
pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent / "programs" / "pipeline.py"
BATCH = 256
# Bytes of the three layers' weights.
WEIGHTS = 4 * (257 * 512 + 513 * 512 + 513)
DATA = 4 * 4096 * 64


@pytest.fixture(scope="module")
def forecast(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("forecast")
    shutil.copy(PROGRAM, directory / "train.py")
    options = ("--json", "--no-what-if", "--batch", str(BATCH), "--device-memory", "64MiB")
    outcome = run([sys.executable, "-m", "stoker", "memory", *options, "train.py"], directory)
    assert outcome.code == 0, outcome.stderr
    answer: dict[str, Any] = json.loads(outcome.stdout)
    return answer


def test_the_peak_is_the_counted_one(forecast: dict[str, Any]) -> None:
    runner = ProgramRunner(Target(str(PROGRAM), []))
    place = place_from_name("BATCH", str(PROGRAM), [])
    counted = [runner.measure(place, BATCH) for _ in range(3)]
    assert {one.rows for one in counted} == {BATCH}
    # Two runs do not take the same pieces of memory in the same order.
    peaks = [one.peak_bytes for one in counted]
    assert 0.85 * min(peaks) <= forecast["peak_bytes"] <= 1.15 * max(peaks)


def test_the_batch_is_the_one_that_training_reads(forecast: dict[str, Any]) -> None:
    place = forecast["place"]
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    assert (place["kind"], place["rows"], place["file"]) == ("dataset", 64, "train.py")
    assert "batch(BATCH)" in lines[place["line"] - 1]


def test_it_says_what_fits_and_who_grows(forecast: dict[str, Any]) -> None:
    # Each row more: its window, two layers of 512 numbers and what the backward pass makes of them.
    assert 64 << 20 > forecast["peak_bytes"] > 3 * WEIGHTS
    assert forecast["largest_batch"] > BATCH
    assert forecast["uncertainty"] < 0.01
    growing = {one["layer"]: one for one in forecast["owners_at_largest"] if one["bytes_per_row"] >= 2048}
    assert {"sequential/dense", "sequential/dense_1"} & set(growing)
    assert all(one["file"] == "train.py" for one in growing.values())


def test_another_optimizer_is_measured() -> None:
    runner = ProgramRunner(Target(str(PROGRAM), []))
    place = place_from_name("BATCH", str(PROGRAM), [])
    trace = runner.measure(place, 2, "sgd")
    assert trace.optimizer == "SGD"
    freed = {~move for move in trace.moves if move < 0}
    kept = sum(one.bytes for number, one in enumerate(trace.allocations) if number not in freed)
    # The data, the weights, and no slots: Adam has two more for each weight.
    assert DATA + WEIGHTS <= kept < DATA + 2 * WEIGHTS
