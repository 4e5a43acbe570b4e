"""Guards over whole loops, on two software GPUs or on the CPU: what they count. Facts as JSON."""

from __future__ import annotations

import functools
import json
import sys
from typing import Any

from stoker.doctor import software_gpu

if "gpu" in sys.argv:
    software_gpu.enable(count=2, memory="1GiB")

import keras
import numpy as np
import tensorflow as tf

import stoker

X = np.random.RandomState(0).rand(64, 8).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def facts(report: Any) -> dict[str, Any]:
    return {
        "steps": report.steps,
        "syncs": report.syncs,
        "copies": report.copies,
        "copied_bytes": report.copied_bytes,
        "retraces": report.retraces,
        "framework_syncs": report.framework_syncs,
        "lines": [[line.count, line.function] for line in report.ordered("syncs")],
        "over": sorted(report.over),
        "warmup": dict(report.warmup),
    }


def model() -> Any:
    made = keras.Sequential([keras.Input([8]), keras.layers.Dense(4), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


class Reader(keras.callbacks.Callback):
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        float(tf.reduce_sum(self.model.layers[0].kernel))


def fit(callbacks: list[Any], **options: Any) -> dict[str, Any]:
    made = model()
    with stoker.guard(action="record", **options) as report:
        made.fit(X, Y, batch_size=8, epochs=2, verbose=0, callbacks=callbacks)
    return facts(report)


def fit_several_steps() -> dict[str, Any]:
    made = model()
    made.compile("sgd", "mse", steps_per_execution=4)
    with stoker.guard(action="record") as report:
        made.fit(X, Y, batch_size=8, verbose=0)
    return facts(report)


def function_loop(**options: Any) -> dict[str, Any]:
    weight = tf.Variable(tf.zeros([8, 1]))

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ weight - y))
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    with stoker.guard(action="record", **options) as report:
        for number in range(10):
            size = 8 if number != 7 else 4
            loss = step(X[:size], Y[:size])
            float(loss)
            if number % 5 == 0:
                np.mean(weight)
    return facts(report)


def eager_loop() -> dict[str, Any]:
    weight = tf.Variable(tf.zeros([8, 1]))
    x, y = tf.constant(X), tf.constant(Y)
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build([weight])
    with stoker.guard(action="record", per_step=True, syncs=1) as report:
        for _ in range(5):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ weight - y))
            optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
            if loss > 0.0:
                pass
    return facts(report)


@functools.cache
def strategy() -> Any:
    """One for all: TensorFlow mixes up the collectives of two."""
    if "gpu" not in sys.argv:
        return tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"])
    return tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"])


def mirrored_loop() -> dict[str, Any]:
    mirrored = strategy()
    with mirrored.scope():
        weight = tf.Variable(tf.zeros([8, 1]))
    data = mirrored.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((X, Y)).batch(16))

    def replica(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ weight - y))
        gradient = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, weight))
        weight.assign_sub(0.1 * gradient)
        return loss

    @tf.function
    def step(x: Any, y: Any) -> Any:
        return mirrored.run(replica, (x, y))

    with stoker.guard(action="record") as report:
        for x, y in data:
            float(mirrored.experimental_local_results(step(x, y))[0])
    return facts(report)


def mirrored_eager() -> dict[str, Any]:
    """Each replica reads, in a thread of the strategy's."""
    mirrored = strategy()
    with mirrored.scope():
        weight = tf.Variable(tf.ones([8, 1]))

    def replica() -> None:
        float(tf.reduce_sum(weight * 2.0))

    with stoker.guard(action="record") as report:
        for _ in range(3):
            mirrored.run(replica)
    return facts(report)


def mirrored_fit() -> dict[str, Any]:
    with strategy().scope():
        made = model()
    with stoker.guard(action="record") as report:
        made.fit(X, Y, batch_size=8, verbose=0, callbacks=[Reader()])
    return facts(report)


if __name__ == "__main__":
    if "gpu" not in sys.argv:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    print(
        json.dumps(
            {
                "fit": fit([]),
                "fit with a reading callback": fit([Reader()]),
                "fit, warm": fit([Reader()], warmup=16),
                "fit, four steps an execution": fit_several_steps(),
                "function loop": function_loop(),
                "function loop, warm": function_loop(warmup=3),
                "eager loop": eager_loop(),
                "mirrored loop": mirrored_loop(),
                "mirrored eager": mirrored_eager(),
                "mirrored fit": mirrored_fit(),
            }
        )
    )
