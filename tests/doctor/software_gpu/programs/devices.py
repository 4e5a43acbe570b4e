"""Two devices with little memory: placement, limits, threads, strategies, saving. Facts as JSON."""

from __future__ import annotations

import json
import tempfile
import threading
from pathlib import Path
from typing import Any

from stoker.doctor import software_gpu

software_gpu.enable(count=2, memory="256MiB", profile="t4")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import stoker  # noqa: E402

X = np.random.RandomState(1).rand(64, 8).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def before_start() -> dict[str, Any]:
    physical = tf.config.list_physical_devices("GPU")
    for device in physical:
        tf.config.experimental.set_memory_growth(device, True)
    return {
        "physical": [d.name for d in physical],
        "growth": tf.config.experimental.get_memory_growth(physical[0]),
    }


def placement() -> dict[str, Any]:
    default = tf.constant(X) + 1.0
    with tf.device("/GPU:1"):
        second = tf.constant(X) + 1.0
    with tf.device("/CPU:0"):
        host = tf.constant(X) + 1.0
    # String ops have no GPU kernel anywhere; soft placement puts them on the host, and the copy is counted.
    text = tf.strings.as_string(tf.cast(second, tf.float64))
    across = default + tf.identity(second)
    return {
        "default": default.device[-5:],
        "second": second.device[-5:],
        "host": host.device[-5:],
        "text": text.device[-5:],
        "across": float(tf.reduce_max(tf.abs(across - 2 * (X + 1)))),
    }


def out_of_memory() -> dict[str, Any]:
    kept, error = [], ""
    try:
        for _ in range(40):
            kept.append(tf.zeros([1024, 1024, 4]))  # 16 MiB each
    except tf.errors.ResourceExhaustedError as exhausted:
        error = exhausted.message
    held = len(kept)
    peak = software_gpu.counters().devices[0].memory_peak
    kept.clear()
    again = [tf.ones([1024, 1024, 4]) for _ in range(held - 1)]
    return {
        "held": held,
        "message": error,
        "peak": peak,
        "recovered": float(tf.reduce_sum(again[-1])),
        "limit": software_gpu.counters().devices[0].memory_limit,
    }


def mirrored() -> dict[str, Any]:
    def train(strategy: Any, fit: Any = keras.Model.fit) -> list[float]:
        keras.utils.set_random_seed(2)
        with strategy.scope():
            model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
            model.compile("sgd", "mse", jit_compile=False)
        history = fit(model, X, Y, batch_size=16, epochs=2, verbose=0, shuffle=False)
        return [float(loss) for loss in history.history["loss"]]

    reference = train(tf.distribute.OneDeviceStrategy("/CPU:0"))
    software_gpu.reset()
    strategy = tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"])
    found = {
        "replicas": strategy.num_replicas_in_sync,
        "cpu": reference,
        "gpus": train(strategy),
        "launches": [device.launches for device in software_gpu.counters().devices],
    }
    software_gpu.reset()
    return {
        **found,
        "fit": train(strategy, stoker.fit),
        "fit_launches": [device.launches for device in software_gpu.counters().devices],
    }


def threads() -> dict[str, Any]:
    start = tf.constant(X)
    results: list[float] = [0.0] * 8

    def work(index: int) -> None:
        value = start
        for _ in range(25):
            value = value + 1.0
        results[index] = float(tf.reduce_max(value))

    start.numpy()
    software_gpu.reset()
    workers = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    counters = software_gpu.counters()
    expected = float(X.max()) + 25
    return {
        "wrong": [r for r in results if abs(r - expected) > 1e-4],
        "launches": counters.launches,
        "syncs": counters.syncs,
        "d2h": counters.d2h.count,
    }


class Scale(tf.Module):
    """Something to save."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = tf.Variable(3.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, x: Any) -> Any:
        return x * self.factor


def saving() -> dict[str, Any]:
    directory = Path(tempfile.mkdtemp())
    module = Scale()
    tf.saved_model.save(module, str(directory / "saved"))
    loaded = tf.saved_model.load(str(directory / "saved"))
    checkpoint = tf.train.Checkpoint(module=module)
    path = checkpoint.save(str(directory / "checkpoint"))
    module.factor.assign(7.0)
    checkpoint.restore(path)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)])
    model.save(directory / "model.keras")
    again = keras.models.load_model(directory / "model.keras")
    return {
        "saved_model": loaded(tf.constant([2.0])).numpy().tolist(),
        "checkpoint": float(module.factor),
        "device": module.factor.device[-5:],
        "keras": float(np.max(np.abs(model(X).numpy() - again(X).numpy()))),
    }


def metering() -> dict[str, Any]:
    tensor = tf.constant(X) * 2.0
    meter = software_gpu.Meter()
    meter.start()
    tensor.numpy()
    read = meter.stop()
    meter.start()
    tf.constant(X)
    feed = meter.stop()
    return {"read": read._asdict(), "feed": feed._asdict()}


facts = {"before_start": before_start(), "placement": placement(), "threads": threads(), "saving": saving()}
print(json.dumps({**facts, "metering": metering(), "mirrored": mirrored(), "out_of_memory": out_of_memory()}))
