"""What the software GPU costs in real time, against the plain CPU: per op, copy, read and training step.

    python benchmarks/software_gpu.py

Each measurement is the best of several, in two processes: one with the software GPU and one without. The last
column is the price of having it, not of a GPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def best(action: Callable[[], Any], repeat: int, number: int) -> float:
    """The least time of one call, in microseconds."""
    action()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(number):
            action()
        times.append((time.perf_counter() - start) / number)
    return min(times) * 1e6


def small_things() -> dict[str, float]:
    import numpy as np
    import tensorflow as tf

    small, large = tf.ones([8, 8]), tf.ones([1024, 1024])
    array = np.ones((1024, 1024), np.float32)

    @tf.function  # type: ignore[untyped-decorator]
    def chain(x: Any) -> Any:
        for _ in range(100):
            x = x + 1.0
        return x

    return {
        "eager add, 64 floats": best(lambda: small + small, 20, 200),
        "add inside a function, each of 100": best(lambda: chain(small), 20, 20) / 100,
        "matmul 1024 x 1024": best(lambda: large @ large, 5, 5),
        "read 64 floats (.numpy())": best(lambda: (small + small).numpy(), 20, 200),
        "read 4 MiB (.numpy())": best(lambda: (large + large).numpy(), 10, 10),
        "feed 4 MiB (tf.constant)": best(lambda: tf.constant(array), 10, 10),
    }


def models() -> dict[str, float]:
    import keras
    import numpy as np

    random = np.random.RandomState(0)
    dense = keras.Sequential([keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)])
    words = keras.Sequential([keras.layers.Embedding(1000, 32), keras.layers.LSTM(64), keras.layers.Dense(1)])
    images = keras.applications.ResNet50(weights=None, input_shape=(64, 64, 3), classes=10)
    cases = {
        "Keras MLP, batch 32": (dense, random.rand(32, 100), random.rand(32, 10)),
        "Keras LSTM, batch 32, 40 words": (words, random.randint(0, 1000, (32, 40)), random.rand(32, 1)),
        "Keras ResNet50, batch 8, 64 x 64": (images, random.rand(8, 64, 64, 3), random.rand(8, 10)),
    }
    results = {}
    for name, (model, x, y) in cases.items():
        model.compile("sgd", "mse", jit_compile=False)
        x = x.astype("float32") if x.dtype == np.float64 else x
        rounds = 3 if "ResNet" in name else 20
        results[name] = best(lambda m=model, x=x, y=y: m.train_on_batch(x, y), rounds, 1)  # type: ignore[misc]
    return results


def probes() -> dict[str, float]:
    from stoker.doctor import software_gpu

    meter = software_gpu.Meter()
    return {
        "Meter.start()": best(meter.start, 20, 1000),
        "Meter.stop()": best(meter.stop, 20, 1000),
        "now_ns()": best(software_gpu.now_ns, 20, 1000),
    }


def start_up() -> dict[str, float]:
    """Loading the built plug-in, TensorFlow being imported already."""
    import tensorflow  # noqa: F401

    from stoker.doctor import software_gpu

    start = time.perf_counter()
    software_gpu.enable(memory="4GiB")
    return {"enable(), already built": (time.perf_counter() - start) * 1e6}


def child(device: str) -> dict[str, float]:
    results = start_up() if device == "gpu" else {}
    results |= {**small_things(), **models()}
    return results | (probes() if device == "gpu" else {})


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(child(sys.argv[1])))
        return
    figures = {}
    for device in ("cpu", "gpu"):
        command = [sys.executable, __file__, device]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        figures[device] = json.loads(done.stdout.splitlines()[-1])
    print("| what | CPU, us | software GPU, us | ratio |\n|---|---|---|---|")
    for name, cost in figures["gpu"].items():
        plain = figures["cpu"].get(name)
        if plain is None:
            print(f"| {name} | - | {cost:,.2f} | - |")
        else:
            print(f"| {name} | {plain:,.1f} | {cost:,.1f} | {cost / plain:.2f} |")


if __name__ == "__main__":
    main()
