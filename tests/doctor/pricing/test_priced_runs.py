"""Prices of real runs: each finding has one, windows stay small, and what is certain by construction is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stoker.doctor.probes.spans import MAX_SPANS, MAX_STEPS, MAX_WINDOWS
from tests.support import run_stoker, write_program

pytestmark = pytest.mark.tensorflow

# The callback sleeps 80 ms after every batch; without it a batch takes a fraction of that on a busy machine, too.
SLEEPY = """
import time
import numpy as np
import tensorflow as tf

class Sleepy(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.08)

model = tf.keras.Sequential([tf.keras.layers.Dense(4)])
model.compile("sgd", "mse")
model.fit(np.ones((200, 4), np.float32), np.ones((200, 4), np.float32), batch_size=4, verbose=0, callbacks=[Sleepy()])
"""

# A read that waits for an asynchronous device, and a NumPy feed, at every step.
READING = """
import time
import numpy as np
import tensorflow as tf

tf.config.experimental.set_synchronous_execution(False)
rows = np.ones((64, 64), np.float32)
weights = tf.Variable(tf.ones([64, 64]))

@tf.function
def step(x):
    y = x
    for _ in range(20):
        y = tf.matmul(y, weights) / 64
    weights.assign_add(y * 0)
    return tf.reduce_sum(y)

for _ in range(300):
    total = step(tf.constant(rows))
    float(total)
"""


def price_of(record: dict[str, Any], kind: str) -> dict[str, float]:
    (price,) = (f["what_if"] for f in record["findings"] if f["kind"] == kind)
    assert price["low"] <= price["speedup"] <= price["high"]
    found: dict[str, float] = price
    return found


def assert_small(record: dict[str, Any]) -> None:
    windows = record["timeline"]["windows"]
    assert 1 <= len(windows) <= MAX_WINDOWS + 1
    for window in windows:
        (host,) = (lane["spans"] for lane in window["lanes"] if lane["name"] == "host")
        assert len(host) <= MAX_SPANS
        assert 1 <= len(window["steps"]) <= MAX_STEPS
        ends = [0.0]
        for start, end, *_ in host:
            assert ends[-1] <= start + 1e-6
            ends.append(end)


@pytest.mark.slow
def test_a_callback_of_known_length(tmp_path: Path) -> None:
    write_program(tmp_path, SLEEPY)
    outcome = run_stoker(tmp_path, "train.py")
    record = outcome.record
    assert record is not None
    assert outcome.code == 0
    assert price_of(record, "host-callback-per-batch")["speedup"] > 2
    assert record["what_if"]["order"][0]["kind"] == "host-callback-per-batch"
    assert len(record["step_times"]) == 49
    assert sorted(record["step_times"])[25] > 0.08
    assert_small(record)
    assert "All repaired: " in outcome.stderr
    assert "without it" in outcome.stderr


def test_every_finding_of_a_run_has_a_price_and_the_whole_is_no_less_than_its_best_part(
    tmp_path: Path,
) -> None:
    write_program(tmp_path, READING)
    record = run_stoker(tmp_path, "--quiet", "train.py").record
    assert record is not None
    kinds = {f["kind"] for f in record["findings"]}
    assert {"sync-in-loop", "numpy-feed-in-loop"} <= kinds
    assert all(f["what_if"] is not None for f in record["findings"])
    best = max(f["what_if"]["speedup"] for f in record["findings"])
    assert record["what_if"]["all"]["speedup"] >= best * 0.999
    together = [place["together"] for place in record["what_if"]["order"]]
    assert together == sorted(together)
    assert_small(record)
    waits = [s[5] for w in record["timeline"]["windows"] for s in w["lanes"][0]["spans"] if s[2] == "sync"]
    assert max(waits) > 0
    assert len(json.dumps(record["timeline"])) < 400_000
