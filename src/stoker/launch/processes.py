"""The processes that an agent starts: workers, and the spares that wait to take their place."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from stoker.doctor.measure import supervise, worker_spare
from stoker.doctor.measure.worker_heartbeat import VARIABLE as HEARTBEAT
from stoker.doctor.measure.worker_spare import WorkerImports
from stoker.goodput.journal import VARIABLE as EVENTS
from stoker.launch.messages import StartWorkers
from stoker.launch.place import RANK, RESTART, SIZE

# Variables that differ from round to round. Nothing reads them before the program starts.
_OF_A_ROUND = {RANK, SIZE, RESTART, "TF_CONFIG", HEARTBEAT, EVENTS, worker_spare.NOTES}


def start_process(
    start: StartWorkers, environment: dict[str, str], pipe: tuple[int, ...] = ()
) -> subprocess.Popen[bytes]:
    """Start the job's program, in a session of its own so that all its children can be killed with it.

    Raises:
        OSError: it cannot be started.
    """
    return subprocess.Popen(
        [sys.executable, *start.arguments],
        cwd=start.directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=supervise.in_child(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        pass_fds=pipe,
    )


def is_stopped(process: int) -> bool:
    """Whether the system lists the process as stopped."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2]
    except OSError:
        return False
    return state.split()[0] in ("T", "t")


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all its children; return when it is dead."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Spare:
    """A process that imports what a worker has imported, and waits to take the worker's place in the next round.

    Args:
        start: the settings of the worker's round.
        environment: the worker's environment.
        imports: what the worker imported.
        file: where the spare reads what to import.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(
        self, start: StartWorkers, environment: dict[str, str], imports: WorkerImports, file: Path
    ) -> None:
        self.imports = imports
        self._start, self._environment, self._file = start, environment, file
        worker_spare.write_imports(imports, file)
        reads, self._pipe = os.pipe()
        try:
            self._process = start_process(
                start, {**environment, worker_spare.SPARE: f"{reads}:{file}"}, pipe=(reads,)
            )
        except OSError:
            os.close(self._pipe)
            raise
        finally:
            os.close(reads)

    def take_place(self, start: StartWorkers, environment: dict[str, str]) -> subprocess.Popen[bytes] | None:
        """Make the spare a worker of another round; None if it is dead or stopped, or would not be the same process."""
        is_same = (start.arguments, start.directory) == (self._start.arguments, self._start.directory)
        if (
            not is_same
            or _settle(environment) != _settle(self._environment)
            or self._process.poll() is not None
            or is_stopped(self._process.pid)
        ):
            self.kill()
            return None
        file = self._file.with_suffix(worker_spare.PLACE)
        file.touch(0o600)
        file.write_text(json.dumps(environment), encoding="utf-8")
        try:
            os.write(self._pipe, b"\n")
        except BrokenPipeError:
            self.kill()
            return None
        os.close(self._pipe)
        return self._process

    def kill(self) -> None:
        """End a spare that nobody needs."""
        os.close(self._pipe)
        kill_group(self._process)
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()


def _settle(environment: dict[str, str]) -> dict[str, str]:
    """Return the variables that stay the same from round to round."""
    return {name: value for name, value in environment.items() if name not in _OF_A_ROUND}
