"""What a guard costs: the same loop without and with one, in the same process.

    make bench-guard                    # 15 rounds

One round times every loop without a guard and with one, in an order that changes from round to round; the figure
is the median over the rounds of the ratio, with the smallest and the largest. Only ratios within a round are
compared: the machine's speed drifts. `no guard again` is the same loop twice, the noise of the method.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf

import stoker

STEPS = 400


def function_loop() -> Callable[[], None]:
    """A compiled step of a small network, fed from memory."""
    sizes = (100, 256, 256, 10)
    weights = [tf.Variable(tf.random.normal(shape, stddev=0.05)) for shape in itertools.pairwise(sizes)]
    batch = tf.random.normal([64, 100])

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            for weight in weights[:-1]:
                x = tf.nn.relu(x @ weight)
            loss = tf.reduce_mean(tf.square(x @ weights[-1] - 1.0))
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.01 * gradient)
        return loss

    def run() -> None:
        for _ in range(STEPS):
            step(batch)

    return run


def pipeline_loop() -> Callable[[], None]:
    """The same kind of step over a tf.data pipeline."""
    weight = tf.Variable(tf.random.normal([100, 100], stddev=0.05))
    data = tf.data.Dataset.from_tensor_slices(tf.random.normal([4096, 100])).repeat().batch(64).prefetch(2)

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ weight @ weight - 1.0))
        weight.assign_sub(0.01 * tape.gradient(loss, weight))
        return loss

    def run() -> None:
        for x in data.take(STEPS):
            step(x)

    return run


def fit() -> Callable[[], None]:
    """Keras, an epoch of small batches."""
    model = keras.Sequential([keras.Input([100]), keras.layers.Dense(128, "relu"), keras.layers.Dense(10)])
    model.compile("adam", "mse")
    data = tf.data.Dataset.from_tensors((tf.zeros([32, 100]), tf.zeros([32, 10]))).repeat(STEPS).prefetch(2)
    return lambda: model.fit(data, verbose=0)


def eager_loop() -> Callable[[], None]:
    """Op by op."""
    weight = tf.Variable(tf.random.normal([100, 10], stddev=0.05))
    batch = tf.random.normal([64, 100])

    def run() -> None:
        for _ in range(STEPS // 4):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ weight) - 1.0))
            weight.assign_sub(0.01 * tape.gradient(loss, weight))

    return run


LOOPS = {
    "tf.function loop": function_loop,
    "over tf.data": pipeline_loop,
    "fit": fit,
    "eager loop": eager_loop,
}


def seconds(run: Callable[[], None], guard: Callable[[], Any]) -> float:
    with guard():
        started = time.perf_counter()
        run()
        return time.perf_counter() - started


def measure(run: Callable[[], None], rounds: int) -> dict[str, list[float]]:
    """Ratios to the loop without a guard, by way."""
    ways: dict[str, Callable[[], Any]] = {
        "no guard": contextlib.nullcontext,
        "no guard again": contextlib.nullcontext,
        "guard()": stoker.guard,
        "guard(per_step=True, warmup=1)": lambda: stoker.guard(per_step=True, warmup=1),
    }
    ratios: dict[str, list[float]] = {way: [] for way in ways if way != "no guard"}
    order = list(ways)
    run()
    for number in range(rounds):
        turn = number % len(order)
        took = {way: seconds(run, ways[way]) for way in order[turn:] + order[:turn]}
        for way, values in ratios.items():
            values.append(took[way] / took["no guard"])
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--loops", nargs="+", default=list(LOOPS), choices=list(LOOPS))
    args = parser.parse_args()
    print("| loop | with | time against none, median | smallest | largest |")
    print("|---|---|---|---|---|")
    for name in args.loops:
        for way, values in measure(LOOPS[name](), args.rounds).items():
            row = (f"{statistics.median(values):.3f}x", f"{min(values):.3f}x", f"{max(values):.3f}x")
            print(f"| {name} | {way} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
