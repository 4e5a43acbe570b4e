"""Running programs as a user would: plain, and under `stoker run`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker.doctor.software_gpu import build

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "stoker"
# No test is about how long something takes: this long is a hang on the busiest machine.
HANGS_S = 600.0
# `make soak-cases`: also the costly cases that resemble those `make test` has.
ALL_CASES = bool(os.environ.get("STOKER_ALL_CASES"))

# TensorFlow's own start-up chatter, with times and thread numbers in it.
_CHATTER = re.compile(
    r"^([IWE]0000 |WARNING: All log messages|To enable the following|\d{4}-\d\d-\d\d .*: [IW] )"
)


@dataclass
class Outcome:
    """How a program ended and what it printed."""

    code: int
    stdout: str
    stderr: str
    record: dict[str, Any] | None = None


def no_software_gpu() -> str | None:
    """Why the software GPU cannot be had here, if it cannot."""
    tensorflow = build.installed_tensorflow()
    if build.is_too_old(tensorflow):
        return f"TensorFlow {tensorflow.version} is too old for the software GPU"
    if build.compiler() is None and not build.library_path(tensorflow).exists():
        return "no C++ compiler: the software GPU's plug-in cannot be built"
    return None


def write_program(directory: Path, text: str, name: str = "train.py") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def environment() -> dict[str, str]:
    return {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}


def run(command: list[str], directory: Path, timeout: float = HANGS_S) -> Outcome:
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, quiet(done.stderr))


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something another process or thread does."""
    deadline = time.monotonic() + HANGS_S
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.0005)


def stop_when(process: int, condition: Callable[[], bool]) -> bool:
    """Stop a child process at a moment at which something holds, however late we are; False if it ended before."""
    deadline = time.monotonic() + HANGS_S
    while time.monotonic() < deadline:
        if condition():
            os.kill(process, signal.SIGSTOP)
            # Its end is left to whoever waits for it.
            state = os.waitid(os.P_PID, process, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            if state is None or state.si_code != os.CLD_STOPPED:
                return False
            if condition():
                return True
            os.kill(process, signal.SIGCONT)
        if os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            return False
        time.sleep(0.0002)
    raise AssertionError("it does not happen")


def run_plain(directory: Path, *words: str) -> Outcome:
    return run([sys.executable, *words], directory)


def run_stoker(directory: Path, *words: str) -> Outcome:
    """`stoker run`, with the record it left."""
    outcome = run([sys.executable, "-m", "stoker", "run", *words], directory)
    outcome.record = last_record(directory)
    return outcome


def last_record(directory: Path) -> dict[str, Any] | None:
    records = sorted((directory / ".stoker" / "runs").glob("*.json"))
    if not records:
        return None
    data: dict[str, Any] = json.loads(records[-1].read_text(encoding="utf-8"))
    return data


def quiet(text: str) -> str:
    """stderr without TensorFlow's start-up chatter."""
    return "\n".join(line for line in text.splitlines() if not _CHATTER.match(line))


def before_ledger(stderr: str) -> str:
    """What the program itself wrote to stderr: all before Stoker's headline."""
    return stderr.split("\nstoker  ", 1)[0].rstrip("\n")
