"""A job whose workers are killed at random moments: it ends with the bits of one that was left alone.

    make soak-workers
    python benchmarks/soak_workers.py --workers 3 --kills 10 --seed 3

Each rank is killed with SIGKILL as often as the others: at any moment since the start (importing, finding each other,
tracing, restoring), at any moment after something new was saved, while a file is being written, in the first step, and
while it validates. The others end by themselves, or are ended if they had not found each other yet; then all are
started again. At the end a job is cut short with 2, 3 and 1 workers in turn, by SIGTERM, and every row must have been
seen once an epoch.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

PROGRAM = """
import hashlib, json, os, sys
from pathlib import Path
import keras, numpy as np, tensorflow as tf, stoker

directory, epochs = Path(sys.argv[1]), int(sys.argv[2])
strategy = stoker.strategy()
keras.utils.set_random_seed(1)
ROWS = 1030
numbers = np.random.default_rng(0)
x = numbers.normal(size=(ROWS, 32)).astype(np.float32)
y = np.stack([x[:, 0] * x[:, 1], np.arange(ROWS)], 1).astype(np.float32)

class Seen(keras.metrics.Metric):
    def __init__(self):
        super().__init__(name="wrong")
        self.counts = self.add_variable((ROWS,), "zeros", name="counts")
    def update_state(self, y, _, sample_weight=None):
        self.counts.assign(self.counts + tf.reduce_sum(tf.one_hot(tf.cast(y[:, 1], tf.int32), ROWS), 0))
    def result(self):
        return tf.reduce_sum(tf.cast(tf.not_equal(tf.convert_to_tensor(self.counts), 1.0), tf.float32))

with strategy.scope():
    model = keras.Sequential([
        keras.Input((32,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(1),
    ])
    model.compile(keras.optimizers.Adam(0.003), lambda y, p: tf.square(y[:, :1] - p), metrics=[Seen()])
class Mark(keras.callbacks.Callback):
    # On the chief: what is going on, in the names of files.
    def on_epoch_begin(self, epoch, logs=None):
        (directory / "stepping").touch()
    def on_test_begin(self, logs=None):
        (directory / "validating").touch()
    def on_test_end(self, logs=None):
        (directory / "validating").unlink()

history = stoker.fit(
    model, x, y, batch_size=48, epochs=epochs, verbose=0, validation_data=(x, y),
    callbacks=[keras.callbacks.EarlyStopping("loss", patience=1000, restore_best_weights=True), Mark()],
    checkpoint=stoker.Checkpoint(directory / "run", every="150ms"),
)
digest = hashlib.sha256()
for variable in [*model.weights, *model.optimizer.variables]:
    digest.update(variable.numpy().tobytes())
rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
(directory / f"end.{rank}").write_text(json.dumps({"state": digest.hexdigest(), "history": history.history}))
"""

MOMENTS = ("at any moment", "after a save", "during a save", "in the first step", "while validating")
# The file that says so, once it is there.
MARKS = {"in the first step": "stepping", "while validating": "validating"}
# How long the others may take to notice, which is the heartbeat and what ending takes. Workers that wait for one that
# was killed before they found each other wait for minutes: whoever starts them ends them then, as `stoker launch` does.
NOTICED_S = 30.0


class Job:
    """All workers of the training, started once."""

    def __init__(self, directory: Path, workers: int, epochs: int) -> None:
        self.directory = directory
        for mark in MARKS.values():
            (directory / mark).unlink(missing_ok=True)
        self._before = self._newest()
        addresses = _free_addresses(workers)
        self.processes = []
        for rank in range(workers):
            task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
            environment = {**os.environ, "TF_CONFIG": json.dumps(task), "TF_CPP_MIN_LOG_LEVEL": "2"}
            with open(directory / f"stderr.{rank}", "w") as said:
                command = [sys.executable, "-c", PROGRAM, str(directory), str(epochs)]
                self.processes.append(
                    subprocess.Popen(command, stderr=said, cwd=directory.parent, env=environment)
                )

    def _newest(self) -> str:
        return max((path.name for path in (self.directory / "run").glob("*.stoker")), default="")

    def saved(self) -> bool:
        return self._newest() != self._before

    def marked(self, kind: str) -> bool:
        return kind not in MARKS or (self.directory / MARKS[kind]).exists()

    def is_saving(self) -> bool:
        return any((self.directory / "run").glob("**/*.partial"))

    def running(self) -> bool:
        codes = [process.poll() for process in self.processes]
        if any(codes):
            said = "\n".join(
                (self.directory / f"stderr.{rank}").read_text()[-2000:]
                for rank, code in enumerate(codes)
                if code
            )
            sys.exit(f"a worker failed by itself: exit codes {codes}\n{said}")
        return None in codes

    def end(self, victim: int, number: signal.Signals) -> tuple[list[int], float]:
        """Send one worker a signal and wait for all; their exit codes, and how long the others took."""
        begin = time.monotonic()
        self.processes[victim].send_signal(number)
        codes = []
        for process in self.processes:
            try:
                codes.append(process.wait(max(NOTICED_S - (time.monotonic() - begin), 0.1)))
            except subprocess.TimeoutExpired:
                if number is not signal.SIGKILL:
                    sys.exit(f"asked to leave by {number.name}, the workers are still there")
                process.kill()
                codes.append(process.wait())
        return codes, time.monotonic() - begin

    def results(self) -> list[dict[str, object]]:
        for process in self.processes:
            process.wait()
        self.running()
        return [
            json.loads((self.directory / f"end.{rank}").read_text()) for rank in range(len(self.processes))
        ]


def interrupted(
    job: Job, kind: str, delay: float, victim: int, number: signal.Signals
) -> tuple[list[int], float]:
    """Interrupt it at such a moment."""
    since = time.monotonic() if kind == "at any moment" else None
    while job.running():
        if since is None and (job.saved() or kind == "in the first step"):
            since = time.monotonic()
        due = since is not None and time.monotonic() - since > delay
        if due and (kind != "during a save" or job.is_saving()) and job.marked(kind):
            return job.end(victim, number)
        time.sleep(0.0005)
    sys.exit("it ended before it was interrupted: give more --epochs")


def _free_addresses(count: int) -> list[str]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]


def left_alone(directory: Path, workers: int, epochs: int) -> tuple[dict[str, object], float, float]:
    """How it ends, how long it takes until it saves, and how long it trains after that."""
    begin = time.monotonic()
    job = Job(directory, workers, epochs)
    while not job.saved() and job.running():
        time.sleep(0.01)
    first = time.monotonic()
    ends = job.results()
    if any(end != ends[0] for end in ends):
        sys.exit("the workers of a job that was left alone end with different bits")
    return ends[0], first - begin, time.monotonic() - first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kills", type=int, default=10, help="of each rank")
    parser.add_argument("--epochs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    moments, counts, slowest = random.Random(args.seed), Counter[str](), 0.0
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        whole, cut, elastic = (Path(place, name) for name in ("whole", "cut", "elastic"))
        for one in (whole, cut, elastic):
            one.mkdir()
        expected, start_s, train_s = left_alone(whole, args.workers, args.epochs)
        kills = args.kills * args.workers
        for number in range(kills):
            # Each rank in turn, and each of them at all moments in turn.
            kind, share = MOMENTS[number // args.workers % len(MOMENTS)], train_s / kills / 2
            delay = moments.uniform(0, start_s + share if kind == "at any moment" else share)
            if kind == "in the first step":
                delay = 0.0
            job = Job(cut, args.workers, args.epochs)
            _, took = interrupted(job, kind, delay, number % args.workers, signal.SIGKILL)
            slowest = max(slowest, took)
            counts[kind] += 1
        ends = Job(cut, args.workers, args.epochs).results()
        for workers in (2, 3, 1):
            job = Job(elastic, workers, 40)
            codes, _ = interrupted(job, "after a save", 0.0, moments.randrange(workers), signal.SIGTERM)
            if codes != [75] * workers:
                sys.exit(f"asked to leave, {workers} workers ended with {codes}")
        seen = Job(elastic, 2, 40).results()[0]["history"]
    wrong = [rank for rank, end in enumerate(ends) if end != expected]
    shown = ", ".join(f"{counts[kind]} {kind}" for kind in MOMENTS)
    verdict = f"DIFFERENT on ranks {wrong}" if wrong else "bit-identical on all ranks"
    rows = "every row once an epoch" if not any(seen["wrong"]) else f"ROWS LOST: {seen['wrong']}"  # type: ignore[index]
    print(
        f"{kills} kills of {args.workers} workers ({shown}; all had ended after {slowest:.1f} s at most), "
        f"{(time.monotonic() - begin) / 60:.1f} min: weights, optimizer and history {verdict}; "
        f"2 -> 3 -> 1 -> 2 workers: {rows}"
    )
    if wrong or any(seen["wrong"]):  # type: ignore[index]
        sys.exit(1)


if __name__ == "__main__":
    main()
