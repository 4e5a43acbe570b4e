"""Running programs as a user would: plain, and under `stoker run`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

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


def write_program(directory: Path, text: str, name: str = "train.py") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def environment() -> dict[str, str]:
    return {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}


def run(command: list[str], directory: Path, timeout: float = 180) -> Outcome:
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
