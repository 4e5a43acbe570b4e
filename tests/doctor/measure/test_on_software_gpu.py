"""`stoker run --device software-gpu`: what a GPU would suffer, in the ledger and on the right lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import Outcome, no_software_gpu, run_stoker, write_program

pytest.importorskip("tensorflow")
if missing := no_software_gpu():
    pytest.skip(missing, allow_module_level=True)

LOOP = """
import numpy as np
import tensorflow as tf

weights = tf.Variable(tf.random.normal([512, 512], seed=1))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss

x = tf.ones([256, 512])
for number in range(60):
    loss = step(x)
    value = float(loss)
print(len(tf.config.list_physical_devices("GPU")))
"""
READ_LINE = LOOP.splitlines().index("    value = float(loss)") + 1


def on_device(directory: Path, *options: str) -> Outcome:
    write_program(directory, LOOP)
    return run_stoker(directory, "--device", *options, "train.py")


def counts(record: dict[str, Any]) -> list[tuple[int, int, int, int]]:
    rows = record["tables"]["devices"]
    return [(row["d2h"]["count"], row["d2h"]["bytes"], row["syncs"], row["launches"]) for row in rows]


def test_reads_copies_and_the_device_are_in_the_ledger(tmp_path: Path) -> None:
    outcome = on_device(tmp_path, "software-gpu", "--device-profile", "t4")
    record = outcome.record
    assert (outcome.code, outcome.stdout) == (0, "1\n")
    assert record is not None
    assert record["device"]["kind"] == "SOFTWARE_GPU"
    assert record["device"]["name"] == "software GPU, t4 profile"
    assert 0 < record["device"]["busy"] < 1
    assert record["device"]["memory_peak"] > 512 * 512 * 4
    (read,) = [f for f in record["findings"] if f["kind"] == "sync-in-loop"]
    assert (read["line"], read["count"], read["bytes"]) == (READ_LINE, 60, 240)
    assert read["wait_s"] > 0
    assert read["copy_s"] > 0
    assert counts(record)[0][:3] == (60, 240, 60)
    assert sum(record["accounts"].values()) == pytest.approx(record["wall_s"], rel=0.01)
    assert "modelled, not measured" in " ".join(outcome.stderr.split())


@pytest.mark.slow
def test_a_second_run_counts_the_same(tmp_path: Path) -> None:
    first = on_device(tmp_path, "software-gpu").record
    second = on_device(tmp_path, "software-gpu").record
    assert first is not None
    assert second is not None
    assert counts(first) == counts(second)


@pytest.mark.slow
def test_two_devices_with_their_memory(tmp_path: Path) -> None:
    outcome = on_device(tmp_path, "software-gpu:2", "--device-memory", "256MiB")
    assert outcome.stdout == "2\n"
    assert outcome.record is not None
    assert outcome.record["device"]["count"] == 2
    assert [row["memory_limit"] for row in outcome.record["tables"]["devices"]] == [256 * 2**20] * 2


@pytest.mark.slow
def test_a_profile_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.stoker.device-profiles.slow]\nbase = "t4"\nsync_us = 500.0\n'
    )
    slow = on_device(tmp_path, "software-gpu", "--device-profile", "slow").record
    usual = on_device(tmp_path, "software-gpu", "--device-profile", "t4").record
    assert slow is not None
    assert usual is not None
    assert slow["device"]["name"] == "software GPU, slow profile"
    assert slow["tables"]["devices"][0]["host_wait_s"] > usual["tables"]["devices"][0]["host_wait_s"]


@pytest.mark.slow
def test_steps_are_counted_when_the_device_has_done_them(tmp_path: Path) -> None:
    """The host is 60 steps ahead when the loop ends, and the program ends without reading anything."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.stoker.device-profiles.weak]\nbase = "t4"\nfloat32_flops = 1e10\n'
    )
    write_program(tmp_path, LOOP.replace("    value = float(loss)\n", ""))
    outcome = run_stoker(tmp_path, "--device", "software-gpu", "--device-profile", "weak", "train.py")
    record = outcome.record
    assert record is not None
    assert record["steps"] == 60
    (device,) = record["tables"]["devices"]
    (stepping,) = record["tables"]["stepping"]
    done_s = device["busy_s"] + device["queued_s"]
    # One step's work of 60 ends before the stepping time begins.
    assert stepping["steps"] / record["steps_per_s"] == pytest.approx(done_s * 59 / 60, rel=0.1)
    assert sum(record["step_times"]) == pytest.approx(done_s * 59 / 60, rel=0.1)
    assert stepping["drain_s"] > 0
    assert sum(stepping["accounts"].values()) == pytest.approx(stepping["seconds"], rel=0.01)
    assert sum(record["accounts"].values()) == pytest.approx(record["wall_s"], rel=0.01)
    assert record["accounts"]["sync"] == pytest.approx(device["queued_s"], rel=0.01)
    assert record["device"]["busy"] > done_s / record["wall_s"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("tpu",), "no device 'tpu'"),
        (("software-gpu:x",), "no device 'software-gpu:x'"),
        (("software-gpu:0",), "0 software GPUs"),
        (("software-gpu", "--device-memory", "much"), "device memory 'much'"),
        (("software-gpu", "--device-profile", "b900"), "no device profile 'b900'"),
    ],
)
def test_a_device_that_makes_no_sense(tmp_path: Path, options: tuple[str, ...], complaint: str) -> None:
    outcome = on_device(tmp_path, *options)
    assert outcome.code == 2
    assert outcome.stdout == ""
    (line,) = outcome.stderr.splitlines()
    assert line.startswith("stoker: ")
    assert complaint in line
