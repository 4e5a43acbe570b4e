"""Jobs under `stoker launch`, left alone and disturbed: they end as they should, however they got there.

    make soak-workers
    PYTHONPATH=. python benchmarks/soak_launch.py --only stopped

alone       one process, two workers twice, three workers: weights within 1e-5, the same bits on all workers and in
            both runs, in epochs that are longer than a call
killed      SIGKILL to a worker: the same bits at the end
stopped     SIGSTOP to a worker: found and started again within the heartbeat and five seconds, the same bits
left        SIGTERM to a worker: all save, start again, which is not counted; the same bits
accounted   twenty SIGKILLs at any moment: the accounts of the job's ledger sum to its wall time within 0.1 %
served      a worker of a parameter server job killed ten times and started again, then for good: the count of steps is
            exact, and the job ends
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.train.workers.jobs import ServedJob

from stoker.goodput.fold import fold
from stoker.goodput.history import find_job, read_history

PROGRAM = """
import hashlib, json, os, sys
from pathlib import Path
import keras, numpy as np, stoker

strategy = stoker.strategy()
rank, restart = (os.environ.get("STOKER_" + name, "0") for name in ("RANK", "RESTART"))
Path(f"pid.{restart}.{rank}").write_text(str(os.getpid()))
keras.utils.set_random_seed(1)
ROWS, BATCH = 48 * 700 + 11, 48
x = np.random.default_rng(0).normal(size=(ROWS, 16)).astype("float32")
y = x[:, :1] * x[:, 1:2] + x[:, 2:3]
with strategy.scope():
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, activation="tanh"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), "mse")
history = stoker.fit(
    model, x, y, batch_size=BATCH, epochs=int(sys.argv[1]), verbose=0, validation_data=(x[:1000], y[:1000]),
    checkpoint=stoker.Checkpoint("run", every="300ms"),
)
weights = [one.numpy() for one in model.weights]
bits = hashlib.sha256(b"".join(one.tobytes() for one in weights)).hexdigest()
flat = np.concatenate([one.ravel() for one in weights]).tolist()
found = {"bits": bits, "weights": flat, "loss": history.history["loss"], "call": history.plan.steps_per_call}
Path(f"end.{rank}").write_text(json.dumps(found))
"""
STEPS = 701
HEARTBEAT_S = 5.0
KILLS = 10
RESTARTS = 20


class Launched:
    """A job under `stoker launch`, in a directory of its own."""

    def __init__(self, directory: Path, workers: int, epochs: int, *options: str) -> None:
        directory.mkdir()
        self.directory, self.workers = directory, workers
        (directory / "train.py").write_text(PROGRAM)
        launch = [
            "-m",
            "stoker",
            "launch",
            "-n",
            str(workers),
            "--heartbeat",
            f"{HEARTBEAT_S:g}s",
            *options,
            "train.py",
        ]
        self._said = directory / "said"
        with open(self._said, "w") as said:
            self._process = subprocess.Popen(
                [sys.executable, *(launch if workers else ["train.py"]), str(epochs)],
                cwd=directory,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "STOKER_STORE": "off"},
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def said(self) -> str:
        return self._said.read_text()

    def until(self, condition: Callable[[], bool]) -> float:
        """Wait for it; when it was so."""
        while not condition():
            if self._process.poll() is not None:
                sys.exit(
                    f"the job ended too early ({self._process.returncode}): give more --epochs\n{self.said()}"
                )
            time.sleep(0.005)
        return time.monotonic()

    def signal(self, rank: int, number: signal.Signals, delay: float) -> float:
        """Send it to a worker, some time after the first checkpoint; when that was."""
        self.until(lambda: any((self.directory / "run").glob("*.stoker")))
        time.sleep(delay)
        os.kill(int((self.directory / f"pid.0.{rank}").read_text()), number)
        return time.monotonic()

    def kill_any(self, moments: random.Random) -> None:
        """Kill a worker of the newest restart, while it starts or while it trains."""
        path = max(self.directory.glob("pid.*"), key=lambda one: int(one.name.split(".")[1]))
        path = path.with_suffix(f".{moments.randrange(self.workers)}")
        self.until(path.exists)
        if moments.random() < 0.5:
            self.wait_for_checkpoint()
        time.sleep(moments.uniform(0, 5))
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(path.read_text()), signal.SIGKILL)
        following = path.with_name(f"pid.{int(path.name.split('.')[1]) + 1}.0")
        self.until(following.exists)

    def wait_for_checkpoint(self) -> None:
        """Wait until the workers have trained and saved; checkpoints are named by their steps."""
        before = self._newest()
        self.until(lambda: self._newest() > before)

    def _newest(self) -> str:
        return max((path.name for path in (self.directory / "run").glob("*.stoker")), default="")

    def stop(self) -> None:
        """Ask the job to save and to end."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()

    def ends(self) -> list[dict[str, Any]]:
        if self._process.wait():
            sys.exit(f"the job ended with exit code {self._process.returncode}\n{self.said()}")
        return [
            json.loads((self.directory / f"end.{rank}").read_text()) for rank in range(max(self.workers, 1))
        ]


def alone(place: Path, epochs: int, moments: random.Random) -> str:
    """Against one process."""
    (one,) = Launched(place / "one", 0, epochs).ends()
    jobs = {
        name: Launched(place / name, int(name[0]), epochs).ends()
        for name in ("2 workers", "2 again", "3 workers")
    }
    bits = {name: {end["bits"] for end in ends} for name, ends in jobs.items()}
    demand(all(len(found) == 1 for found in bits.values()), "workers of a job end with different bits")
    demand(bits["2 workers"] == bits["2 again"], "two runs end with different bits")
    apart = {
        name: float(np.abs(np.subtract(ends[0]["weights"], one["weights"])).max())
        for name, ends in jobs.items()
    }
    demand(max(apart.values()) < 1e-5, f"weights are {apart} from those of one process")
    calls = {name: ends[0]["call"] for name, ends in jobs.items()}
    demand(
        max(calls.values()) < STEPS,
        f"calls of {calls} steps hold a whole epoch of {STEPS}: give a slower model",
    )
    return f"weights at most {max(apart.values()):.1e} from one process; calls of {calls} of an epoch's {STEPS} steps"


def disturbed(
    number: signal.Signals, line: str, within_s: float | None
) -> Callable[[Path, int, random.Random], str]:
    """A job whose worker gets a signal, once for each rank, against one that was left alone."""

    def part(place: Path, epochs: int, moments: random.Random) -> str:
        expected = Launched(place / "whole", 2, epochs).ends()[0]
        taken = []
        for rank in (0, 1):
            job = Launched(place / f"{number.name}-{rank}", 2, epochs)
            sent = job.signal(rank, number, moments.uniform(0, 1))
            taken.append(job.until(lambda job=job: line in job.said()) - sent)  # type: ignore[misc]
            for end in job.ends():
                same = (end["bits"], end["loss"]) == (expected["bits"], expected["loss"])
                demand(same, f"{number.name} to worker {rank}: other bits at the end")
        shown = ", ".join(f"{seconds:.1f} s" for seconds in taken)
        demand(within_s is None or max(taken) < within_s, f"started again only after {shown}")
        return f"{number.name} to each of two workers, started again after {shown}: bit-identical"

    return part


def accounted(place: Path, epochs: int, moments: random.Random) -> str:
    """The accounts of a job that is killed again and again."""
    begun = time.monotonic()
    job = Launched(place / "accounted", 2, 1000 * epochs, "--max-restarts", "99")
    for _ in range(RESTARTS):
        job.until(lambda: any(job.directory.glob("pid.*")))
        job.kill_any(moments)
    job.wait_for_checkpoint()
    job.stop()
    took_s = time.monotonic() - begun
    found = find_job(job.directory / ".stoker" / "jobs", "2")
    demand(found is not None, "the job has no ledger")
    assert found is not None
    ledger = fold(found.name, read_history(found))
    off = abs(sum(ledger.accounts.values()) / ledger.wall_s - 1)
    demand(ledger.restarts >= RESTARTS, f"{ledger.restarts} restarts in the ledger")
    demand(off < 1e-3, f"the accounts sum to {sum(ledger.accounts.values()):.3f} s of {ledger.wall_s:.3f} s")
    # Python's own start and end are not the job's. They took 10 s on a machine with a load of 15.
    demand(took_s - 30 < ledger.wall_s < took_s, f"the job took {ledger.wall_s:.1f} s of {took_s:.1f} s")
    shares = ", ".join(f"{name} {value / ledger.wall_s:.1%}" for name, value in ledger.accounts.items())
    return (
        f"{ledger.restarts} restarts: the accounts sum to {ledger.wall_s:.2f} s, off by {off:.4%}; the command took "
        f"{took_s:.2f} s; {shares}"
    )


def served(place: Path, epochs: int, moments: random.Random) -> str:
    """A parameter server's worker, killed and started again."""
    # Enough epochs for all kills: one is over about once in a tenth of a second.
    rounds, begun = 20 * KILLS, place / "begun"
    job = ServedJob("served.py", 2, place, str(place), str(rounds))
    try:
        for kill in range(KILLS):
            wanted = 1 + kill * (rounds // (KILLS + 2))
            while not (begun.exists() and int(begun.read_text() or 0) >= wanted):
                demand(
                    job.processes[0].poll() is None,
                    f"it ended before kill {kill + 1}:\n{job.output(0)[-2000:]}",
                )
                time.sleep(0.005)
            time.sleep(moments.uniform(0, 0.3))
            job.processes[3].kill()
            job.processes[3].wait()
            job.processes[3] = job.started(3)
        # Once more, for good: the coordinator must end though it waits for that worker.
        job.processes[3].kill()
        found = job.result()
    finally:
        job.kill()
    demand(
        found["steps"] == found["iterations"] == rounds * 101,
        f"{found['steps']} steps, {rounds * 101} were asked",
    )
    return (
        f"{KILLS} kills of a parameter server's worker: {found['steps']:,} steps of {rounds * 101:,}, exact"
    )


PARTS: dict[str, Callable[[Path, int, random.Random], str]] = {
    "alone": alone,
    "killed": disturbed(signal.SIGKILL, "was killed by SIGKILL; restarting all workers (1 of 3)", None),
    "stopped": disturbed(signal.SIGSTOP, "restarting all workers (1 of 3)", HEARTBEAT_S + 5),
    "left": disturbed(signal.SIGTERM, "the workers were preempted; restarting all workers", None),
    "accounted": accounted,
    "served": served,
}


def demand(holds: bool, line: str) -> None:
    """End the soak with a line unless it holds."""
    if not holds:
        sys.exit(f"FAILED: {line}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for name in args.only:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as place:
            line = PARTS[name](Path(place), args.epochs, random.Random(args.seed))
        print(f"{name}: {line} ({time.monotonic() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
