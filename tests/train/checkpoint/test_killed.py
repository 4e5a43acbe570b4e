"""Killed with SIGKILL at any moment and started again, training ends with the bits of a run that was left alone."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support import HANGS_S, ROOT, no_software_gpu

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]
KILLS = 2
RUNS = ["resident", "streamed", "python_data"]
if no_software_gpu() is None:
    RUNS.append("in_parts")


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All trainings in one go: importing TensorFlow once is enough."""
    words = ["1", str(KILLS), str(tmp_path_factory.mktemp("resume")), *RUNS]
    command = [sys.executable, "-m", "tests.train.programs.kill_and_resume", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {name: end for line in lines for name, end in line.items()}


@pytest.mark.parametrize("name", RUNS)
def test_killed_runs_end_with_the_same_bits(ends: dict[str, Any], name: str) -> None:
    end = ends[name]
    assert len(end["kills"]) >= 2, "it ended before it could be killed: the test proves nothing"
    different = [what for what, value in end["whole"].items() if end["cut"].get(what) != value]
    assert different == []
    assert end["whole"].keys() == end["cut"].keys()


@pytest.mark.skipif("in_parts" not in RUNS, reason=str(no_software_gpu()))
def test_a_run_in_parts_that_were_measured_is_killed_within_an_epoch(ends: dict[str, Any]) -> None:
    end = ends["in_parts"]
    assert end["whole"]["parts"] == 3
    steps = [int(kill["newest"].removesuffix(".stoker").rpartition("-")[2]) for kill in end["kills"]]
    assert any(step % 45 for step in steps), steps


def test_some_kills_hit_a_write(ends: dict[str, Any]) -> None:
    assert any(kill["while_writing"] for end in ends.values() for kill in end["kills"])
