"""The real clock: what it counts and what it leaves out. Facts as JSON."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from stoker.doctor import software_gpu

software_gpu.enable(memory="1GiB", profile="t4")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


def spent(action: Callable[[], Any]) -> dict[str, float]:
    """Seconds of the virtual clock and of the real one."""
    # The real clock is asked first and last: what else the machine does in between counts for both.
    began_real, began_virtual = time.monotonic_ns(), software_gpu.now_ns()
    action()
    virtual = software_gpu.now_ns() - began_virtual
    return {"virtual": virtual / 1e9, "real": (time.monotonic_ns() - began_real) / 1e9}


class Slow:
    """Blocks when it is destroyed, as the iterator of an autotuned pipeline may."""

    def __del__(self) -> None:
        time.sleep(0.3)


def teardown() -> dict[str, float]:
    iterator = iter(tf.data.Dataset.range(10))
    next(iterator)
    iterator.slow = Slow()
    holder = [iterator]
    del iterator
    return spent(holder.clear)


def emulation() -> dict[str, float]:
    matrix = tf.random.stateless_uniform([2048, 2048], [1, 2])
    matrix @ matrix
    return spent(lambda: [matrix @ matrix for _ in range(3)])


def backwards() -> int:
    """How often eight threads saw the clock go back, with kernels and reads going on meanwhile."""
    wrong = []

    def watch() -> None:
        tensor = tf.ones([64, 64])
        last = software_gpu.now_ns()
        for _ in range(200):
            tensor = tensor + 1.0
            float(tensor[0, 0])
            now = software_gpu.now_ns()
            if now < last:
                wrong.append(last - now)
            last = now

    threads = [threading.Thread(target=watch) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(wrong)


def pipelines() -> dict[str, list[float]]:
    """Seconds per epoch, and of them copying: copies in the loop or ahead of it, the best of five."""
    rows: Any = np.ones((12 * 512, 1024), np.float32)
    with tf.device("/CPU:0"):
        host = tf.data.Dataset.from_tensor_slices(rows).batch(512)
    ahead = host.apply(tf.data.experimental.prefetch_to_device("/GPU:0", buffer_size=2))
    weights = tf.random.stateless_uniform([1024, 1024], [1, 2])

    @tf.function
    def step(x: Any) -> Any:
        return tf.reduce_sum(tf.nn.relu(x @ weights) @ weights)

    def epoch(dataset: Any) -> tuple[float, float]:
        iterator = iter(dataset)
        next(iterator)  # making and starting the iterator is not what is compared
        software_gpu.reset()
        for batch in iterator:
            float(step(batch))
        counters = software_gpu.counters()
        return counters.wall_s, counters.devices[0].host_copy_s

    def best(dataset: Any) -> list[float]:
        epochs = [epoch(dataset) for _ in range(5)]
        return [min(column) for column in zip(*epochs, strict=True)]

    epoch(host)
    return {"in_the_loop": best(host), "ahead": best(ahead)}


facts = {"sleep": spent(lambda: time.sleep(0.2)), "teardown": teardown(), "emulation": emulation()}
print(json.dumps({**facts, "backwards": backwards(), "pipelines": pipelines()}))
