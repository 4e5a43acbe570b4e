"""A short program on the software GPU, checked against the CPU. `stoker software-gpu` runs it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from stoker.doctor import software_gpu
from stoker.errors import StokerError
from stoker.printing import print_answer, print_note

if TYPE_CHECKING:
    import numpy as np


def main() -> int:
    """Print one line per check; return 0 if all checks pass."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        software_gpu.enable(memory="256MiB")
    except StokerError as error:
        print_note(str(error))
        return error.exit_code
    checks = {
        "results are the same as on the CPU": _same_results(),
        "a read is one sync and one copy": _read_is_counted(),
        "a training step repeats the CPU's loss": _same_loss(),
        "a request for too much memory fails, and memory that is freed can be used again": _memory_is_limited(),
    }
    for name, holds in checks.items():
        print_answer(f"self-test   {'ok    ' if holds else 'FAILED'} {name}")
    return 0 if all(checks.values()) else 1


def _same_results() -> bool:
    import tensorflow as tf

    def compute() -> np.ndarray:
        x = tf.reshape(tf.range(64.0), [8, 8]) / 64.0
        result: np.ndarray = tf.nn.softmax(tf.linalg.matmul(tf.sin(x), x)).numpy()
        return result

    with tf.device("/CPU:0"):
        expected = compute()
    with tf.device("/GPU:0"):
        return bool(abs(compute() - expected).max() < 1e-5)


def _read_is_counted() -> bool:
    import tensorflow as tf

    tensor = tf.ones([128, 128]) * 2.0
    software_gpu.reset()
    tensor.numpy()
    counters = software_gpu.counters()
    return (counters.syncs, counters.d2h.count, counters.d2h.bytes) == (1, 1, 128 * 128 * 4)


def _same_loss() -> bool:
    import tensorflow as tf

    def loss_after_a_step() -> float:
        weights = tf.Variable(tf.ones([4, 1]))
        x = tf.reshape(tf.range(32.0), [8, 4])
        for _ in range(2):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ weights - 1.0))
            weights.assign_sub(1e-4 * tape.gradient(loss, weights))
        return float(loss)

    with tf.device("/CPU:0"):
        expected = loss_after_a_step()
    with tf.device("/GPU:0"):
        return abs(loss_after_a_step() - expected) < 1e-4 * abs(expected)


def _memory_is_limited() -> bool:
    import tensorflow as tf

    try:
        tf.zeros([512, 1024, 1024])  # 2 GiB on a device of 256 MiB
    except tf.errors.ResourceExhaustedError:
        return float(tf.reduce_sum(tf.ones([1024, 1024]))) == 1024 * 1024
    return False


if __name__ == "__main__":
    sys.exit(main())
