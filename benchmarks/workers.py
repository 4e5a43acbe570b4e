"""Step times of `stoker.fit` in jobs of one, two and three workers, by the size of the model; one sum a step or four.

    make bench-workers

Every worker is a process of its own on this machine, held to one core, and they talk over the loopback device: a
machine each and a fast network, in small. With more workers than cores they share them, and the figures say little.
The model is an MLP under Adam, the global batch the same for any number of workers. "four sums" sends rows, gradients,
loss and logs each by itself, as the trainer did before it packed them. Best of three, microseconds a step.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack

PROGRAM = """
import json, os, sys, time
rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % len(os.sched_getaffinity(0))]})
import keras, numpy as np, tensorflow as tf, stoker
from stoker.train.update import replicas

width, batch, sums, steps = (int(argument) for argument in sys.argv[1:5])
if sums == 4:
    packed = replicas.summed
    def add(values):
        return packed(values)
    def four(values):
        # Rows, loss and logs: three sums of a few numbers, one behind the other, before and after the gradients'.
        before, after = tf.zeros([1]), tf.zeros([1])
        for _ in range(2):
            (before,) = add([before])
        with tf.control_dependencies([before]):
            done = packed(values)
        with tf.control_dependencies(done):
            (after,) = add([after])
        with tf.control_dependencies([after]):
            return [tf.identity(one) for one in done]
    replicas.summed = four
strategy = stoker.strategy()
keras.utils.set_random_seed(0)
with strategy.scope():
    model = keras.Sequential([
        keras.Input((100,)),
        keras.layers.Dense(width, activation="relu"),
        keras.layers.Dense(width, activation="relu"),
        keras.layers.Dense(10),
    ])
    model.compile(keras.optimizers.Adam(), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x = np.random.default_rng(0).normal(size=(batch * 8, 100)).astype("float32")
y = np.arange(batch * 8) % 10
options = dict(batch_size=batch, verbose=0, shuffle=False)
stoker.fit(model, x, y, epochs=2, plan={"steps_per_call": 8}, **options)
best = float("inf")
for _ in range(3):
    begin = time.perf_counter()
    stoker.fit(model, x, y, steps_per_epoch=8, epochs=max(steps // 8, 1), plan={"steps_per_call": 8}, **options)
    best = min(best, (time.perf_counter() - begin) / (max(steps // 8, 1) * 8))
print(json.dumps({"us": best * 1e6, "bytes": sum(4 * int(np.prod(w.shape)) for w in model.trainable_weights)}))
"""


def measured(workers: int, width: int, batch: int, sums: int, steps: int) -> dict[str, float]:
    """What rank 0 of a job of so many workers measured."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(workers)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    started = []
    for rank in range(workers):
        task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
        environment = {
            **os.environ,
            "TF_CONFIG": json.dumps(task),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "STOKER_STORE": "off",
        }
        command = [sys.executable, "-c", PROGRAM, *map(str, (width, batch, sums, steps))]
        started.append(
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
    said = [process.communicate() for process in started]
    for process, (_, errors) in zip(started, said, strict=True):
        if process.returncode:
            sys.exit(errors[-3000:])
    found: dict[str, float] = json.loads(said[0][0].splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 3])
    args = parser.parse_args()
    print(
        f"{os.cpu_count()} cores\n\n| weights | batch | workers | one sum, us | four sums, us |\n|---|---|---|---|---|"
    )
    for width, batch, steps in ((128, 64, 800), (512, 64, 240), (1400, 64, 80), (512, 4096, 40)):
        for workers in args.workers:
            one = measured(workers, width, batch, 1, steps)
            four = measured(workers, width, batch, 4, steps) if workers > 1 else None
            other = "" if four is None else f"{four['us']:,.0f}"
            print(
                f"| {one['bytes'] / 2**20:.2f} MiB | {batch} | {workers} | {one['us']:,.0f} | {other} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
