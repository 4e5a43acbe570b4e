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
        self.files = [directory / f"{name}.{rank}" for rank in range(workers)]
        addresses = free_addresses(workers)
        self.processes = []
        for rank, file in enumerate(self.files):
            task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
            environment = {**os.environ, "TF_CONFIG": json.dumps(task), "TF_CPP_MIN_LOG_LEVEL": "3"}
            with open(file, "w", encoding="utf-8") as output:
                self.processes.append(
                    subprocess.Popen(
                        [sys.executable, str(PROGRAMS / program), *arguments],
                        cwd=directory,
                        env=environment,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                    )
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
