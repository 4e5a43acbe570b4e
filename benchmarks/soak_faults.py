"""Random faults in jobs under `stoker launch`: every row is seen once, the bits stay, and the right worker is blamed.

    make soak-faults
    PYTHONPATH=. python benchmarks/soak_faults.py --count 20 --seed 3 --only killed stopped

Each job trains under a few faults in a row, drawn at random with the worker they hit and the moment. It must end with
the bits and the history of a job that was left alone, and print one line per fault, which blames that worker. Disk,
network and clock need root, sshd or a C compiler; without them those faults are left out, in one line.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import network_hosts
from benchmarks.wall_clock import WallClock

PROGRAM = Path(__file__).parent / "programs" / "faulty_job.py"
HEARTBEAT_S = 5.0
FAULTS_PER_JOB = 5
HANGS_S = 600.0


class LaunchedJob:
    """A job in a directory of its own, whose checkpoints lie on a small disk where one can be mounted."""

    def __init__(
        self,
        directory: Path,
        workers: int,
        epochs: int,
        hosts: network_hosts.Hosts | None = None,
        clock: WallClock | None = None,
    ) -> None:
        directory.mkdir()
        self.directory, self.workers, self._hosts = directory, workers, hosts
        shutil.copy(PROGRAM, directory / "train.py")
        (directory / "run").mkdir()
        self.small_disk = mount_small_disk(directory / "run")
        self._clock = clock
        where = ["--hosts", hosts.names, "--ssh", hosts.ssh] if hosts else []
        self._output = directory / "output"
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "stoker", "launch", "-n", str(workers), *where),
                    *("--heartbeat", f"{HEARTBEAT_S:g}s", "--max-restarts", "99", "train.py", str(epochs)),
                ],
                cwd=directory,
                env={**os.environ, **self._environment()},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _environment(self) -> dict[str, str]:
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "STOKER_STORE": "off"}
        return {**quiet, **(self._clock.environment if self._clock else {})}

    def output(self) -> str:
        return self._output.read_text(errors="replace")

    def restart_lines(self) -> list[str]:
        """What `stoker launch` said of each restart."""
        return re.findall(r"^stoker: (.*); restarting all workers", self.output(), re.M)

    def pid(self, rank: int) -> int:
        return int((self.directory / f"pid.{len(self.restart_lines())}.{rank}").read_text())

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Until it holds; a job that ends before is a failure."""
        deadline = time.monotonic() + HANGS_S
        while not condition():
            if self.process.poll() is not None:
                fail(self, f"the job ended with exit code {self.process.returncode} before the next fault")
            if time.monotonic() > deadline:
                fail(self, f"nothing happened for {HANGS_S:g} s")
            time.sleep(0.02)

    def wait_for_epoch(self, epoch: int) -> None:
        """Until the job, in its present start, has reached this epoch."""

        def is_reached() -> bool:
            path = self.directory / f"epoch.{len(self.restart_lines())}"
            return path.exists() and int(path.read_text() or -1) >= epoch

        self.wait_until(is_reached)

    def begin_epochs(self, count: int) -> None:
        """Let the workers begin the first so many."""
        for epoch in range(count):
            (self.directory / f"go.{epoch}").touch()

    def cut_network(self, rank: int) -> Callable[[], None]:
        """Cut a worker's machine off; what connects it again."""
        assert self._hosts is not None
        return self._hosts.cut(rank % self._hosts.count)

    def set_clock(self, days: int) -> None:
        assert self._clock is not None
        self._clock.set(days)

    def host_of(self, rank: int) -> str:
        assert self._hosts is not None
        return self._hosts.addresses[rank % self._hosts.count]

    def ends(self) -> list[dict[str, Any]]:
        """What each worker ended with."""
        if self.process.wait(HANGS_S):
            fail(self, f"the job ended with exit code {self.process.returncode}")
        return [json.loads((self.directory / f"end.{rank}").read_text()) for rank in range(self.workers)]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.small_disk:
            subprocess.run(["umount", "-l", str(self.directory / "run")], check=False)


def fail(job: LaunchedJob, line: str) -> None:
    """End the soak, with what was said of each restart and the last things the job printed."""
    restarts = "\n".join(job.restart_lines())
    sys.exit(f"FAILED: {line}\n{restarts}\n{job.output()[-4000:]}")


def mount_small_disk(place: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@dataclass(frozen=True)
class Fault:
    """One kind of fault.

    Attributes:
        inject: makes it happen to a worker; may return what ends it, called once the job has noticed.
        blame: how the line begins that is printed, by rank.
        is_last: it shows only some time later, so that no other fault can follow it in its job.
        may_pass: the job may also go on without a restart.
    """

    inject: Callable[[LaunchedJob, int, random.Random], Callable[[], None] | None]
    blame: Callable[[LaunchedJob, int], str]
    is_last: bool = False
    may_pass: bool = False


def kill(job: LaunchedJob, rank: int, _: random.Random) -> None:
    os.kill(job.pid(rank), signal.SIGKILL)


def stop(job: LaunchedJob, rank: int, _: random.Random) -> None:
    os.kill(job.pid(rank), signal.SIGSTOP)


def preempt(job: LaunchedJob, rank: int, _: random.Random) -> None:
    os.kill(job.pid(rank), signal.SIGTERM)


def leave(job: LaunchedJob, rank: int, _: random.Random) -> None:
    (job.directory / f"leave.{rank}").touch()


def start_slowly(job: LaunchedJob, rank: int, moments: random.Random) -> None:
    """Killed, and then slower to start than the heartbeat allows: its peers wait, and none of them is blamed."""
    (job.directory / f"slow.{rank}").write_text(str(moments.uniform(HEARTBEAT_S, 3 * HEARTBEAT_S)))
    kill(job, (rank + 1) % job.workers, moments)


def fill_disk(job: LaunchedJob, _: int, __: random.Random) -> Callable[[], None]:
    filler = job.directory / "run" / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))
    return lambda: filler.unlink(missing_ok=True)


def set_clock(job: LaunchedJob, _: int, moments: random.Random) -> None:
    job.set_clock(moments.choice([-400, -1, 1, 400]))


def cut_network(job: LaunchedJob, rank: int, _: random.Random) -> Callable[[], None]:
    return job.cut_network(rank)


FAULTS = {
    "killed": Fault(kill, lambda job, rank: f"worker {rank}.* was killed by SIGKILL"),
    "stopped": Fault(stop, lambda job, rank: f"worker {rank}.* sent no heartbeat .*its process is stopped"),
    "preempted": Fault(preempt, lambda job, rank: "the workers were preempted"),
    "left": Fault(leave, lambda job, rank: f"worker {rank}.* ended with exit code 3"),
    "slow": Fault(
        start_slowly, lambda job, rank: f"worker {(rank + 1) % job.workers}.* was killed by SIGKILL"
    ),
    # Every worker writes its part of a checkpoint: any may be the first that cannot. It is an error at the next one.
    "disk": Fault(fill_disk, lambda job, rank: r"worker \d.* ended with exit code 1", is_last=True),
    # TensorFlow's coordination service counts its heartbeats by the wall clock: set ahead, it ends a worker.
    "clock": Fault(
        set_clock, lambda job, rank: r"worker \d.* ended with exit code 1", is_last=True, may_pass=True
    ),
    "network": Fault(
        cut_network,
        lambda job, rank: (
            f"({re.escape(job.host_of(rank))} sent no heartbeat|lost the agent on {re.escape(job.host_of(rank))})"
        ),
    ),
}


def run_job(
    place: Path, names: list[str], workers: int, hosts: network_hosts.Hosts | None, moments: random.Random
) -> list[dict[str, Any]]:
    """A job under these faults, one after the other, to its end: what each worker ended with."""
    clock = WallClock(place.with_suffix(".clock")) if "clock" in names else None
    job = LaunchedJob(place, workers, len(names) + 2, hosts, clock)
    try:
        for epoch, name in enumerate(names):
            fault, rank = FAULTS[name], moments.randrange(workers)
            job.wait_for_epoch(epoch)
            job.begin_epochs(epoch + 1)
            time.sleep(moments.uniform(0, 1.5))
            before = len(job.restart_lines())
            mend = fault.inject(job, rank, moments)
            if fault.is_last:
                job.begin_epochs(len(names) + 2)
            if fault.may_pass:
                job.process.wait(HANGS_S)
            else:
                job.wait_until(lambda before=before: len(job.restart_lines()) > before)  # type: ignore[misc]
            for line in job.restart_lines()[before:]:
                if not re.match(fault.blame(job, rank), line):
                    fail(job, f"{name}, worker {rank}: the wrong blame: {line}")
            if mend is not None:
                mend()
        job.begin_epochs(len(names) + 2)
        ends = job.ends()
        least = sum(not FAULTS[name].may_pass for name in names)
        if not least <= len(job.restart_lines()) <= len(names):
            fail(job, f"{names}: {len(job.restart_lines())} restarts")
    finally:
        job.close()
    return ends


def find_possible_faults(wanted: list[str]) -> list[str]:
    """Those that this machine can make; a line for each that it cannot."""
    missing = {
        "disk": None if os.geteuid() == 0 else "root",
        "clock": None if shutil.which("cc") else "a C compiler",
        "network": network_hosts.what_is_missing(),
    }
    for name in wanted:
        if missing.get(name):
            print(f"left out: {name} needs {missing[name]}", flush=True)
    return [name for name in wanted if not missing.get(name)]


def draw_jobs(names: list[str], count: int, moments: random.Random) -> Iterator[list[str]]:
    """`count` faults, a few for each job.

    Those of the network need machines, and have jobs of their own.
    """
    drawn = [moments.choice(names) for _ in range(count)]
    last = [name for name in drawn if FAULTS[name].is_last]
    for group in (
        [name for name in drawn if name == "network"],
        [name for name in drawn if name != "network" and name not in last],
    ):
        for first in range(0, len(group), FAULTS_PER_JOB):
            job = group[first : first + FAULTS_PER_JOB]
            yield job + [last.pop()] if last and "network" not in job else job
    yield from ([name] for name in last)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="faults in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS))
    args = parser.parse_args()
    moments = random.Random(args.seed)
    names = find_possible_faults(args.only)
    done: Counter[str] = Counter()
    expected: dict[tuple[int, int], Any] = {}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        for number, faults in enumerate(draw_jobs(names, args.count, moments)):
            workers = 2 if "network" in faults else moments.choice([2, 2, 3])
            case = (workers, len(faults))
            if case not in expected:
                alone = LaunchedJob(Path(temporary) / f"alone-{number}", workers, len(faults) + 2)
                alone.begin_epochs(len(faults) + 2)
                expected[case] = alone.ends()
                alone.close()
                wrong = {one for end in expected[case] for one in end["history"]["wrong_rows"]}
                if wrong != {0.0}:
                    fail(alone, f"left alone, rows are not seen once an epoch: {wrong}")
            place = Path(temporary) / f"job-{number}"
            with network_hosts.open_hosts(2) if "network" in faults else contextlib.nullcontext() as hosts:
                ends = run_job(place, faults, workers, hosts, moments)
            if ends != expected[case]:
                sys.exit(
                    f"FAILED: job {number} ({', '.join(faults)}) ends with other bits or another history"
                )
            done.update(faults)
            print(f"job {number}: {', '.join(faults)}: same bits, right blame", flush=True)
            shutil.rmtree(place, ignore_errors=True)
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(done.items()))
    print(f"{sum(done.values())} faults in {time.monotonic() - began:.0f} s ({kinds}): none lost a bit")


if __name__ == "__main__":
    main()
