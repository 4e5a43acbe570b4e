"""Step times of `stoker.fit` in jobs of one, two and three workers, by the size of the model; one sum a step or four.

    make bench-workers
    python benchmarks/workers.py --rounds 2 --workers 1 2 --only sizes

Every worker is a process of its own on this machine, held to one core, and they talk over the loopback device: a
machine each and a fast network, in small. With more workers than cores they share them, and the figures say little.
The model is an MLP under Adam. Best of the rounds, microseconds a step.

sizes   the global batch is the same for any number of workers; the last rows have enough work a step to gain. "four
        sums" sends rows, gradients, loss and logs each by itself, as the trainer once did; both in turn in one job
whatif  one worker under `stoker run`, and what `stoker whatif --workers` makes of it with the bandwidth and the latency
        that a sum of many bytes and one of few show; against jobs of two and three workers with the same batch each
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HEAD = """
import json, os, sys, time
task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {})
cores = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cores[task.get("index", 0) % len(cores)]})
import keras, numpy as np, tensorflow as tf, stoker
from stoker.train.workers import group
strategy = stoker.strategy()
"""

STEPS = (
    HEAD
    + """
from stoker.train.update import replicas

width, batch, steps, rounds = (int(argument) for argument in sys.argv[1:5])
packed = replicas.sum_over_replicas

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

x = np.random.default_rng(0).normal(size=(batch * steps, 100)).astype("float32")
y = np.arange(batch * steps) % 10
options = dict(batch_size=batch, verbose=0, shuffle=False, plan={"steps_per_call": steps, "jit": "none"})

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
    replicas.sum_over_replicas = sums
    stoker.fit(model, x, y, **options)
    return model

def seconds(model):
    begin = time.perf_counter()
    # One epoch in one call, so that what workers agree on around it is a small part.
    stoker.fit(model, x, y, **options)
    return (time.perf_counter() - begin) / steps

models = {"one": made(packed)}
if strategy.num_replicas_in_sync > 1 and len(sys.argv) < 6:
    models["four"] = made(four)
times = {name: [] for name in models}
for _ in range(rounds):
    for name, model in models.items():
        times[name].append(seconds(model))
found = {name: min(taken) * 1e6 for name, taken in times.items()}
print(json.dumps({**found, "bytes": sum(4 * int(np.prod(w.shape)) for w in models["one"].trainable_weights)}))
"""
)

NETWORK = (
    HEAD
    + """
def timed(floats, count):
    def body(index, values):
        halved = strategy.run(lambda: group.sum_over_replicas([values])[0] / 2)
        return index + 1, strategy.experimental_local_results(halved)[0]
    many = tf.function(
        lambda: tf.while_loop(lambda index, _: index < count, body, (0, tf.ones([floats])))[1], autograph=False
    )
    many().numpy()
    taken = []
    for _ in range(int(sys.argv[1])):
        begin = time.perf_counter()
        many().numpy()
        taken.append((time.perf_counter() - begin) / count)
    return min(taken)
few, many = timed(16, 200), timed(2**20, 12)
print(json.dumps({"few_s": few, "many_s": many, "bytes": 4 * 2**20}))
"""
)

# Units of a layer, the global batch, steps measured. The last has work enough a step for a second worker to pay.
CASES = ((128, 64, 400), (512, 64, 160), (1400, 64, 40), (512, 4096, 8))
# Units of a layer, the batch of each worker, steps.
PRICED = ((128, 512, 200), (512, 512, 60))


def measured(program: str, workers: int, *arguments: int | str) -> dict[str, float]:
    """What rank 0 of a job of so many workers printed last, as JSON."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(workers)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    started = []
    for rank in range(workers):
        task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
        command = [sys.executable, "-c", program, *map(str, arguments)]
        environment = {**_quiet(), "TF_CONFIG": json.dumps(task)}
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


def _quiet() -> dict[str, str]:
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "STOKER_STORE": "off"}


def sizes(workers: list[int], rounds: int) -> None:
    """The table of step times."""
    print("| weights | batch | workers | one sum, us | four sums, us |\n|---|---|---|---|---|")
    for width, batch, steps in CASES:
        alone = None
        for count in workers:
            found = measured(STEPS, count, width, batch, steps, rounds)
            four = f"{found['four']:,.0f} ({found['four'] / found['one']:.1f}x)" if "four" in found else ""
            alone = alone or found["one"]
            gain = f" ({alone / found['one']:.2f}x as fast)" if count > 1 else ""
            size = found["bytes"] / 2**20
            print(f"| {size:.2f} MiB | {batch} | {count} | {found['one']:,.0f}{gain} | {four} |", flush=True)


def whatif(workers: list[int], rounds: int) -> None:
    """Predicted and measured, rows a second."""
    network = measured(NETWORK, 2, rounds)
    # Of two workers every byte travels once, in two messages.
    latency, bandwidth = network["few_s"] / 2, network["bytes"] / (network["many_s"] - network["few_s"])
    print(f"a message takes {latency * 1e6:,.0f} us; {bandwidth / 1e9:.2f} GB/s\n")
    print(
        "| weights | batch of each | workers | rows/s predicted | rows/s measured | off by |\n|---|---|---|---|---|---|"
    )
    for width, batch, steps in PRICED:
        with tempfile.TemporaryDirectory() as place:
            _recorded(Path(place), width, batch, steps, rounds)
            for count in workers[1:]:
                found = measured(STEPS, count, width, batch * count, steps, rounds, "one")
                rows = batch * count / found["one"] * 1e6
                said = _predicted(Path(place), count, bandwidth, latency)
                size = found["bytes"] / 2**20
                print(
                    f"| {size:.2f} MiB | {batch} | {count} | {said:,.0f} | {rows:,.0f} | {said / rows - 1:+.0%} |",
                    flush=True,
                )


def _recorded(place: Path, width: int, batch: int, steps: int, rounds: int) -> None:
    """One worker's run, in the directory's `.stoker`."""
    (place / "train.py").write_text(STEPS)
    words = ["-m", "stoker", "run", "--quiet", "train.py", *map(str, (width, batch, steps, rounds))]
    environment = {name: value for name, value in _quiet().items() if name != "TF_CONFIG"}
    done = subprocess.run(
        [sys.executable, *words], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr[-3000:])


def _predicted(place: Path, workers: int, bandwidth: float, latency: float) -> float:
    words = [
        "--workers",
        str(workers),
        "--bandwidth",
        f"{bandwidth / 1e9:.6f}",
        "--latency",
        f"{latency * 1e6:.3f}us",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "stoker", "whatif", *words, "--json"],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    (row,) = json.loads(done.stdout)["rows"]
    return float(row["examples_per_s"])


PARTS: dict[str, Any] = {"sizes": sizes, "whatif": whatif}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    args = parser.parse_args()
    print(f"{os.cpu_count()} cores")
    for name in args.only:
        print()
        PARTS[name](args.workers, args.rounds)


if __name__ == "__main__":
    main()
