"""Jobs of real processes on this machine, as a launcher starts them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support import HANGS_S

PROGRAMS = Path(__file__).parent / "programs"


class Job:
    """The workers of one job; rank r prints into `<directory>/<name>.<r>`."""

    def __init__(
        self, program: str, workers: int, directory: Path, *arguments: str, name: str = "job"
    ) -> None:
        self._start(program, [("worker", rank) for rank in range(workers)], directory, arguments, name)

    def _start(
        self,
        program: str,
        tasks: list[tuple[str, int]],
        directory: Path,
        arguments: tuple[str, ...],
        name: str,
    ) -> None:
        self._cluster: dict[str, list[str]] = {}
        for (job, _), address in zip(tasks, free_addresses(len(tasks)), strict=True):
            self._cluster.setdefault(job, []).append(address)
        self._tasks, self._directory = tasks, directory
        self._command = [sys.executable, str(PROGRAMS / program), *arguments]
        self.files = [directory / f"{name}.{number}" for number in range(len(tasks))]
        self.processes = [self.started(number) for number in range(len(tasks))]

    def started(self, number: int) -> subprocess.Popen[bytes]:
        """One of its processes, for the first time or again."""
        job, index = self._tasks[number]
        task = {"cluster": self._cluster, "task": {"type": job, "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(task), "TF_CPP_MIN_LOG_LEVEL": "3"}
        with open(self.files[number], "w", encoding="utf-8") as output:
            return subprocess.Popen(
                self._command, cwd=self._directory, env=environment, stdout=output, stderr=subprocess.STDOUT
            )

    def wait(self) -> list[int]:
        """The exit codes, when all have ended."""
        return [process.wait(HANGS_S) for process in self.processes]

    def kill(self) -> None:
        """Leave no process behind."""
        for process in self.processes:
            process.kill()
            process.wait()

    def output(self, rank: int) -> str:
        return self.files[rank].read_text(encoding="utf-8", errors="replace")

    def results(self) -> list[Any]:
        """What each rank printed last, as JSON; all must have ended well."""
        codes = self.wait()
        said = "\n".join(self.output(rank)[-3000:] for rank, code in enumerate(codes) if code)
        assert not any(codes), f"exit codes {codes}\n{said}"
        return [json.loads(self.output(rank).splitlines()[-1]) for rank in range(len(codes))]


class ServedJob(Job):
    """A coordinator, a parameter server and workers: processes 0, 1 and from 2 on."""

    def __init__(self, program: str, workers: int, directory: Path, *arguments: str) -> None:
        tasks = [("chief", 0), ("ps", 0), *(("worker", number) for number in range(workers))]
        self._start(program, tasks, directory, arguments, "served")

    def result(self) -> Any:
        """What the coordinator printed last, as JSON."""
        code = self.processes[0].wait(HANGS_S)
        assert code == 0, self.output(0)[-3000:]
        return json.loads(self.output(0).splitlines()[-1])


def alone(program: str, directory: Path, *arguments: str) -> Any:
    """What one process without a job prints last, as JSON."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment.pop("TF_CONFIG", None)
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / program), *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def free_addresses(count: int) -> list[str]:
    """Ports of this machine that nobody has."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
