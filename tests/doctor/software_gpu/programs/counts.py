"""Copies, syncs and launches of things people write, as JSON. With an argument: on that clock."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from stoker.doctor import software_gpu

software_gpu.enable(memory="1GiB", clock=sys.argv[1] if len(sys.argv) > 1 else "real")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

ARRAY = np.linspace(0, 1, 16384, dtype=np.float32).reshape(128, 128)
SCALAR = np.float32(3)


def measured(action: Callable[[], Any]) -> dict[str, Any]:
    software_gpu.reset()
    kept = action()
    counters = software_gpu.counters()
    del kept
    device = counters.devices[0]
    return {
        "h2d": [device.h2d.count, device.h2d.bytes],
        "d2h": [device.d2h.count, device.d2h.bytes],
        "d2d": [device.d2d.count, device.d2d.bytes],
        "syncs": device.syncs,
        "launches": device.launches,
        "clusters": device.clusters,
        "wall_s": counters.wall_s,
        "busy_s": device.busy_s,
        "host_wait_s": device.host_wait_s,
        "host_copy_s": device.host_copy_s,
        "memory_in_use": device.memory_in_use,
        "memory_peak": device.memory_peak,
    }


def reads() -> dict[str, Any]:
    tensor = tf.constant(ARRAY)
    fresh = [tensor + float(i) for i in range(4)]
    total = tf.reduce_sum(tensor)
    twice = tensor * 2.0
    return {
        "constant": measured(lambda: tf.constant(ARRAY)),
        "two_constants": measured(lambda: [tf.constant(ARRAY), tf.constant(ARRAY)]),
        "int32_constant": measured(lambda: tf.constant(3)),
        "add": measured(lambda: tensor + tensor),
        "numpy": measured(lambda: fresh[0].numpy()),
        "numpy_again": measured(lambda: fresh[0].numpy()),
        "float": measured(lambda: float(total)),
        "np_mean": measured(lambda: np.mean(fresh[1])),
        "np_asarray": measured(lambda: np.asarray(fresh[2])),
        "if": measured(lambda: bool(tf.reduce_sum(fresh[3]) > SCALAR)),
        "format": measured(lambda: f"{tf.reduce_max(twice):.3f}"),
    }


def training() -> dict[str, Any]:
    weights = tf.Variable(tf.random.stateless_normal([128, 128], [1, 2]))
    batch = tf.constant(ARRAY)

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    @tf.function(jit_compile=True)
    def compiled(x: Any) -> Any:
        return step(x)

    def loop(read: bool) -> list[Any]:
        losses = []
        for _ in range(100):
            loss = step(batch)
            losses.append(loss.numpy() if read else loss)
        return losses if read else [tf.stack(losses).numpy()]

    step(batch)
    compiled(batch)
    return {
        "loop_kept": measured(lambda: loop(read=False)),
        "loop_read": measured(lambda: loop(read=True)),
        "feed": measured(lambda: [step(ARRAY) for _ in range(10)]),
        "compiled": measured(lambda: [compiled(batch) for _ in range(10)]),
    }


def pipelines() -> dict[str, Any]:
    with tf.device("/CPU:0"):
        rows = tf.data.Dataset.from_tensor_slices(np.tile(ARRAY, (8, 1))).batch(128)

    def consume(dataset: Any) -> Any:
        total = tf.zeros([])
        for batch in dataset:
            total = total + tf.reduce_sum(batch)
        return total

    on_device = tf.data.experimental.prefetch_to_device("/GPU:0", buffer_size=2)
    consume(rows)
    consume(rows.apply(on_device))
    return {
        "host_pipeline": measured(lambda: consume(rows.prefetch(2))),
        "prefetch_to_device": measured(lambda: consume(rows.apply(on_device))),
    }


def keras_fit() -> dict[str, Any]:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    x, y = ARRAY[:64, :8], ARRAY[:64, :1]
    with tf.device("/CPU:0"):
        rows = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
    model.fit(rows, verbose=0)
    return {
        "fit_epoch": measured(lambda: model.fit(rows, verbose=0)),
        "fit_two_epochs": measured(lambda: model.fit(rows, epochs=2, verbose=0)),
    }


print(json.dumps({**reads(), **training(), **pipelines(), **keras_fit()}))
