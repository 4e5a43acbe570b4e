"""From SIGKILL to the next step of a job under `stoker launch`: with `--standby` and without, in turn.

    make bench-restart
    PYTHONPATH=. python benchmarks/restart.py --workers 2 --rounds 3 --kills 2

A short program (a small dense network) trains with checkpoints. When it has trained for a while and the spares wait,
one worker gets SIGKILL. The time ends with the first steps of the restarted job, as the workers' journals note them.
Beside it: what a spare costs, in CPU seconds and in memory that it shares with no other process.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.launch.support import find_children, find_parent

PROGRAM = """
import os
from pathlib import Path
rank, restart = (os.environ["STOKER_" + name] for name in ("RANK", "RESTART"))
Path(f"pid.{restart}.{rank}").write_text(str(os.getpid()))
import keras, numpy as np, stoker

strategy = stoker.strategy()
keras.utils.set_random_seed(1)
x = np.random.default_rng(0).normal(size=(48 * 100, 16)).astype("float32")
y = x[:, :1] * x[:, 1:2]
with strategy.scope():
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, activation="tanh"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), "mse")
stoker.fit(model, x, y, batch_size=48, epochs=10**6, verbose=0, checkpoint=stoker.Checkpoint("run", every="300ms"))
"""
_TICKS = os.sysconf("SC_CLK_TCK")


def read_steps(directory: Path, restart: int) -> Iterator[int]:
    """The times at which workers of this restart noted steps, in nanoseconds of the monotonic clock."""
    for path in directory.glob(f".stoker/jobs/*/events/worker-{restart}-*.events"):
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event["say"] == "steps":
                yield event["at"]


def cpu_seconds(process: int) -> float:
    """The CPU time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def private_mib(process: int) -> float:
    """The memory that a process shares with no other."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


class RestartedJob:
    """A job that trains until it is killed."""

    def __init__(self, directory: Path, workers: int, standby: bool) -> None:
        self._directory, self._workers, self._standby = directory, workers, standby
        self._restart = 0
        (directory / "train.py").write_text(PROGRAM)
        words = [*(["--standby"] if standby else []), "--max-restarts", "99", "--quiet", "train.py"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stoker", "launch", "-n", str(workers), *words],
            cwd=directory,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "STOKER_STORE": "off"},
        )
        self._wait_for_steps()

    def _wait_for_steps(self) -> float:
        """Wait until this restart has noted steps; the first time at which it did, in seconds."""
        while not (found := list(read_steps(self._directory, self._restart))):
            if self.process.poll() is not None:
                sys.exit("the job has ended")
            time.sleep(0.05)
        return min(found) / 1e9

    def _wait_for_spares(self, worker: int) -> list[int]:
        """Wait until every worker has a spare that has imported everything."""
        workers = {int(path.read_text()) for path in self._directory.glob(f"pid.{self._restart}.*")}
        agent = find_parent(worker)
        while len(spares := find_children(agent) - workers) < self._workers:
            time.sleep(0.1)
        before: list[float] = []
        while (now := [cpu_seconds(one) for one in spares]) != before or min(now) < 1:
            before = now
            time.sleep(2)
        return sorted(spares)

    def kill(self) -> tuple[float, float, float]:
        """Kill a worker; the seconds until the next step, and CPU seconds and MiB of each spare."""
        worker = int((self._directory / f"pid.{self._restart}.{self._workers - 1}").read_text())
        spares = self._wait_for_spares(worker) if self._standby else []
        costs = [(cpu_seconds(one), private_mib(one)) for one in spares] or [(0.0, 0.0)]
        # Some steps, so that there is a checkpoint.
        time.sleep(3)
        killed_at = time.monotonic()
        os.kill(worker, signal.SIGKILL)
        self._restart += 1
        took = self._wait_for_steps() - killed_at
        taken = {int(path.read_text()) for path in self._directory.glob(f"pid.{self._restart}.*")}
        if self._standby and taken != set(spares):
            sys.exit(f"the spares {spares} did not become the workers {sorted(taken)}")
        return took, *(statistics.mean(cost) for cost in zip(*costs, strict=True))  # type: ignore[return-value]


def measure(workers: int, standby: bool, kills: int) -> list[tuple[float, float, float]]:
    """A job that is killed several times."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        job = RestartedJob(Path(place), workers, standby)
        try:
            return [job.kill() for _ in range(kills)]
        finally:
            job.process.kill()
            job.process.wait()


def show(values: list[float]) -> str:
    """The median, with the least and the most."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=2, help="in each job")
    args = parser.parse_args()
    print(
        "| workers | without, s | --standby, s | ratio | CPU of a spare, s | its memory, MiB |\n"
        "|---|---|---|---|---|---|"
    )
    for workers in args.workers:
        took: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
        for number in range(args.rounds):
            for standby in (True, False) if number % 2 else (False, True):
                took[standby] += measure(workers, standby, args.kills)
                print(
                    f"load {os.getloadavg()[0]:.0f}: {workers}, {standby}: {took[standby][-args.kills :]}",
                    file=sys.stderr,
                    flush=True,
                )
        cold, warm = ([one[0] for one in took[standby]] for standby in (False, True))
        ratio = statistics.median(warm) / statistics.median(cold)
        cpu, memory = (statistics.median(one[what] for one in took[True]) for what in (1, 2))
        print(
            f"| {workers} | {show(cold)} | {show(warm)} | {ratio:.2f} | {cpu:.1f} | {memory:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
