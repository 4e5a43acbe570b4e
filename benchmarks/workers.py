"""Step times of `stoker.fit` in jobs of one, two and three workers, by the size of the model; one sum a step or four.

    make bench-workers

Every worker is a process of its own on this machine, held to one core, and they talk over the loopback device: a
machine each and a fast network, in small. With more workers than cores they share them, and the figures say little.
The model is an MLP under Adam, the global batch the same for any number of workers. "four sums" sends rows, gradients,
loss and logs each by itself, as the trainer did before it packed them; both in turn in one job. Best of five,
microseconds a step.
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

width, batch, steps = (int(argument) for argument in sys.argv[1:4])
packed = replicas.summed

def four(values):
    # Rows, loss and logs: three sums of a number, one behind the other, before and after that of the gradients.
    before, after = tf.zeros([1]), tf.zeros([1])
    for _ in range(2):
        (before,) = packed([before])
    with tf.control_dependencies([before]):
        done = packed(values)
    with tf.control_dependencies(done):
        (after,) = packed([after])
    with tf.control_dependencies([after]):
        return [tf.identity(one) for one in done]

strategy = stoker.strategy()
x = np.random.default_rng(0).normal(size=(batch * steps, 100)).astype("float32")
y = np.arange(batch * steps) % 10
options = dict(batch_size=batch, verbose=0, shuffle=False, plan={"steps_per_call": steps})

def made(sums):
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = keras.Sequential([
            keras.Input((100,)),
            keras.layers.Dense(width, activation="relu"),
            keras.layers.Dense(width, activation="relu"),
            keras.layers.Dense(10),
        ])
        model.compile(keras.optimizers.Adam(), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    replicas.summed = sums
    stoker.fit(model, x, y, **options)
    return model

def seconds(model):
    begin = time.perf_counter()
    # One epoch in one call, so that what workers agree on around it is a small part.
    stoker.fit(model, x, y, **options)
    return (time.perf_counter() - begin) / steps

models = {"one": made(packed)}
if strategy.num_replicas_in_sync > 1:
    models["four"] = made(four)
times = {name: [] for name in models}
for _ in range(5):
    for name, model in models.items():
        times[name].append(seconds(model))
found = {name: min(taken) * 1e6 for name, taken in times.items()}
print(json.dumps({**found, "bytes": sum(4 * int(np.prod(w.shape)) for w in models["one"].trainable_weights)}))
"""


def measured(workers: int, width: int, batch: int, steps: int) -> dict[str, float]:
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
        command = [sys.executable, "-c", PROGRAM, *map(str, (width, batch, steps))]
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


# Units of a layer, the global batch, steps measured.
CASES = ((128, 64, 400), (512, 64, 160), (1400, 64, 48), (512, 4096, 32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 3])
    args = parser.parse_args()
    print(
        f"{os.cpu_count()} cores\n\n| weights | batch | workers | one sum, us | four sums, us |\n|---|---|---|---|---|"
    )
    for width, batch, steps in CASES:
        for workers in args.workers:
            found = measured(workers, width, batch, steps)
            four = f"{found['four']:,.0f}" if "four" in found else ""
            size = found["bytes"] / 2**20
            print(f"| {size:.2f} MiB | {batch} | {workers} | {found['one']:,.0f} | {four} |", flush=True)


if __name__ == "__main__":
    main()
