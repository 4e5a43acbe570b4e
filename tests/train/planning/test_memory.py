"""The fewest parts that fit are found by measuring, on the software GPU, and the training is that of whole batches."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError
from stoker.train.execution.feeding import sources
from stoker.train.planning.memory import MemoryTrials, find_batch_rows, parse_memory
from tests.support import HANGS_S, ROOT, no_software_gpu

X: Any = np.ones((40, 3), "float32")
Y: Any = np.ones((40, 1), "float32")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What the program says of its runs, all of them in one process."""
    if missing := no_software_gpu():
        pytest.skip(missing)
    command = [sys.executable, "-m", "tests.train.programs.parts_in_memory"]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HANGS_S)
    assert done.returncode == 0, done.stderr[-3000:]
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


@pytest.mark.slow
def test_the_fewest_parts_that_fit_are_taken(found: dict[str, Any]) -> None:
    limit, tight = found["limit"], found["tight"]
    # As found by trying all of them.
    assert tight["parts"] == next(int(k) for k, one in found["tried"].items() if one["peak"] <= limit) == 3
    assert tight["peak"] <= limit
    assert found["roomy"]["parts"] == 1


def test_what_decided_is_in_the_plan(found: dict[str, Any]) -> None:
    tight = found["tight"]
    figures = tight["figures"]
    assert figures["memory_limit_bytes"] == found["limit"]
    assert figures["part_rows"] == 667
    # What was predicted of steps that were not run, and what was counted: independent ops run in any order.
    assert figures["whole_batch_bytes"] == pytest.approx(found["tried"]["1"]["peak"], rel=0.2)
    assert figures["peak_bytes"] == pytest.approx(found["tried"]["3"]["peak"], rel=0.2)
    assert tight["reasons"][0].startswith("parts of 667 rows need ")
    assert "the whole batch would need 1" in tight["reasons"][0]
    assert found["roomy"]["reasons"][0].startswith("the whole batch needs ")


def test_measuring_changes_nothing(found: dict[str, Any]) -> None:
    assert found["tight"]["weights"] == found["tried"]["3"]["weights"]
    assert found["roomy"]["weights"] == found["tried"]["1"]["weights"]
    assert found["tight"]["loss"] == pytest.approx(found["roomy"]["loss"], rel=1e-5)
    assert found["tight"]["weights"] == pytest.approx(found["roomy"]["weights"], rel=1e-5)
    # The trainer's update of the same loss.
    assert found["own_step"]["weights"] == pytest.approx(found["roomy"]["weights"], rel=1e-5)


@pytest.mark.parametrize("way", ["streamed", "own_step"])
def test_streams_and_own_steps_are_cut_as_well(found: dict[str, Any], way: str) -> None:
    assert found[way]["parts"] == 3
    assert found[way]["peak"] <= found["limit"]


def test_auto_takes_what_the_device_has(found: dict[str, Any]) -> None:
    auto = found["auto"]
    assert auto["figures"]["memory_limit_bytes"] == pytest.approx(0.95 * 24 * 2**20, rel=0.01)
    assert auto["parts"] == 2
    assert auto["figures"]["whole_batch_bytes"] > 24 * 2**20


def test_what_cannot_fit_and_what_cannot_be_measured_is_said(found: dict[str, Any]) -> None:
    assert found["nothing"].startswith("BatchTooLargeError: a step on a single row needs ")
    assert "the number of rows in a batch is not known beforehand" in found["generator"]


@dataclass
class Line(MemoryTrials):
    """Trials of a step that needs 100 bytes, 7 more for each row, and 50 for the sums over parts."""

    asked: list[int] = field(default_factory=list)

    def _measure(self, parts: int) -> float:
        self.asked.append(parts)
        return needed(self.rows, parts)

    def _sum_bytes(self) -> int:
        return 50


def needed(rows: int, parts: int) -> int:
    return 100 + 7 * -(-rows // parts) + 50 * (parts > 1)


def test_any_line_gives_the_fewest_in_few_trials() -> None:
    for rows, limit in itertools.product((1, 2, 7, 100, 1000), (160, 200, 300, 850, 900, 8000)):
        trials = Line(None, None, rows, limit, None)  # type: ignore[arg-type] # nothing is run
        expected = next((k for k in range(1, rows + 1) if needed(rows, k) <= limit), None)
        assert trials.choose().parts == expected, (rows, limit)
        assert len(trials.asked) <= 5, (rows, limit)


def test_the_rows_of_a_batch_are_found_behind_what_maps_it() -> None:
    rows = tf.data.Dataset.from_tensor_slices((X, Y))
    mapped = rows.batch(7).map(lambda x, y: (x, y)).prefetch(1)
    assert find_batch_rows(sources.source(mapped)) == 7
    assert find_batch_rows(sources.source(X, Y, batch_size=8)) == 8
    assert find_batch_rows(sources.source(rows.map(lambda x, y: (x[None], y[None])))) in (None, 1)
    assert find_batch_rows(sources.source(pair for pair in [(X, Y)])) is None


def compiled(*layers: Any, **options: Any) -> Any:
    model = keras.Sequential([keras.Input([3], **options), *layers, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def test_a_cpu_has_no_memory_that_is_counted() -> None:
    history = stoker.fit(compiled(), X, Y, memory="auto", verbose=0)
    assert history.plan.parts == 1
    assert "batches are whole: TensorFlow does not count a CPU's memory" in history.plan.reasons
    with pytest.raises(ArgumentError, match="memory=: TensorFlow does not count a CPU's memory; plan="):
        stoker.fit(compiled(), X, Y, memory="14GiB", verbose=0)


@pytest.mark.parametrize("given", ["14", "lots", 0, True, 2.5, "-3GiB"])
def test_a_memory_that_makes_no_sense(given: Any) -> None:
    with pytest.raises(ArgumentError, match='give "auto", a size such as "14GiB", or a number of bytes'):
        parse_memory(given)


def test_sizes_are_read() -> None:
    assert [parse_memory(one) for one in (None, "auto", "2KiB", 7)] == [None, "auto", 2048, 7]


class Own(keras.Sequential):
    def train_step(self, data: Any) -> Any:
        return super().train_step(data)


def test_what_cannot_be_cut_is_refused() -> None:
    own = Own([keras.Input([3]), keras.layers.Dense(1)])
    own.compile("sgd", "mse")
    summed = compiled()
    summed.compile("sgd", keras.losses.MeanSquaredError(reduction=None))
    eager = compiled()
    eager.compile("sgd", "mse", run_eagerly=True)
    for model, said in (
        (own, "parts=2: Own has a train_step of its own: write it as the step of a stoker.Trainer"),
        (summed, "parts=2: the loss 'mean_squared_error' has reduction=None"),
        (eager, "parts=2: steps run eagerly"),
        (compiled(batch_size=10), "parts=2: the model was made for batches of 10 rows"),
    ):
        with pytest.raises(ArgumentError, match=said):
            stoker.fit(model, X, Y, batch_size=10, plan={"parts": 2}, verbose=0)
