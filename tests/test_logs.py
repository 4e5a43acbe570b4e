"""What the library says goes through one logger, which a program can silence or redirect with standard logging."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support import HANGS_S

Runner: TypeAlias = Callable[[str], list[str]]

# A store that cannot be reached: the writer's thread warns about it.
TRACK = """
import stoker
with stoker.track("x", store="postgresql://nobody@127.0.0.1:1/none") as run:
    run.log(0, loss=1.0)
run.flush()
"""


@pytest.fixture
def stderr_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Runs a program, and returns what it wrote to stderr."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(program: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=HANGS_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr.splitlines()

    return run


def test_by_default_a_warning_is_one_line_on_stderr(stderr_of: Runner) -> None:
    lines = stderr_of(TRACK)
    assert [line.partition(":")[0] for line in lines] == ["stoker"] * len(lines)
    assert lines[0].startswith("stoker: the store postgresql://nobody@127.0.0.1:1/none cannot be used")
    assert "\x1b" not in lines[0]


@pytest.mark.parametrize(
    "setting",
    [
        "logging.getLogger('stoker').setLevel(logging.CRITICAL)",
        "logging.getLogger('stoker').addHandler(logging.NullHandler())",
        "import stoker.logs; logging.getLogger('stoker').handlers = [logging.NullHandler()]",
    ],
    ids=["level", "handler", "removed"],
)
def test_standard_logging_silences_it(stderr_of: Runner, setting: str) -> None:
    assert stderr_of(f"import logging; {setting}\n{TRACK}") == []


def test_a_programs_own_logging_shows_nothing_twice(stderr_of: Runner) -> None:
    lines = stderr_of(f"import logging; logging.basicConfig()\n{TRACK}")
    assert len(lines) == len(set(lines))
    assert all(line.startswith("stoker: ") for line in lines)


def test_a_closed_stderr_is_no_error(stderr_of: Runner) -> None:
    assert stderr_of(f"import sys; sys.stderr.close()\n{TRACK}") == []
