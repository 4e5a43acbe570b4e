"""Starting the program's process, and reading the answer that it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from stoker.chatter import LEVEL, is_chatter
from stoker.doctor.forecast.child_request import ENVIRONMENT, NO_STEP, BatchPlace, ChildRequest, place_from
from stoker.doctor.forecast.trace import StepTrace
from stoker.doctor.measure.launch import Target
from stoker.errors import StokerError
from stoker.units import quantity

_CHILD = "stoker.doctor.forecast.child"


class MeasuringError(StokerError):
    """The program's first steps could not be measured."""


@dataclass(frozen=True)
class ProgramRunner:
    """Runs a program's first steps on the software GPU, each time in a process of its own."""

    target: Target
    timeout_s: float = 600.0

    def find_batch(self) -> BatchPlace | None:
        """Return where the program sets its batch; None if it does so neither in a pipeline nor in `fit`.

        Raises:
            MeasuringError: the program failed, or never trained.
        """
        values = json.loads(self._run(self._request()))
        return None if values is None else place_from(values)

    def measure(self, place: BatchPlace, rows: int, change: str = "", steps: int = 3) -> StepTrace:
        """Return the allocations of the first steps at a batch, optionally with one of the changes.

        Raises:
            MeasuringError: the program failed, or never trained.
        """
        request = replace(self._request(), place=place, rows=rows, change=change, steps=steps)
        return StepTrace.from_json(self._run(request))

    def _request(self) -> ChildRequest:
        # Device memory is memory of this machine. Only what the program uses is taken.
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        target = self.target
        return ChildRequest(
            target.name, target.arguments, target.is_module, target.user_root, "", memory_bytes=memory
        )

    def _run(self, request: ChildRequest) -> str:
        with tempfile.TemporaryDirectory(prefix="stoker-memory-") as folder:
            answer, said = Path(folder, "answer.json"), Path(folder, "said.txt")
            request = replace(request, answer=str(answer))
            environment = os.environ | {ENVIRONMENT: request.to_json(), "STOKER_STORE": "off"}
            environment.setdefault(LEVEL, "2")
            at = f" at a batch of {request.rows:,}" if request.rows else ""
            try:
                with said.open("wb") as output:
                    done = subprocess.run(
                        [sys.executable, "-m", _CHILD],
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        timeout=self.timeout_s,
                    )
            except subprocess.TimeoutExpired:
                raise MeasuringError(
                    f"{request.program}{at} did not make {quantity(request.steps, 'step')} in {self.timeout_s:.0f} s: "
                    "give it less data, or raise --timeout"
                ) from None
            if answer.exists():
                return answer.read_text(encoding="utf-8")
            if done.returncode == NO_STEP:
                raise MeasuringError(f"{request.program}{at} ended before its first training step")
            raise MeasuringError(f"{request.program}{at} failed: {_last_words(said, done.returncode)}")


def _last_words(said: Path, code: int) -> str:
    """Return the last telling line of an output, or the signal that ended the program."""
    if code < 0:
        return f"signal {-code} ended it" + (" (this machine has too little memory?)" if code == -9 else "")
    lines = said.read_text(encoding="utf-8", errors="replace").splitlines()
    telling = [line.strip() for line in lines if line.strip() and not is_chatter(line)]
    named = [line for line in telling if "Error: " in line]
    return (named or telling or [f"exit code {code}"])[-1]
