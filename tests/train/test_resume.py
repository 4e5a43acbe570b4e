"""Killed with SIGKILL at any moment and started again, training ends with the bits of a run that was left alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("name", ["resident", "streamed", "half_precision"])
def test_killed_runs_end_with_the_same_bits(tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-m", "tests.train.programs.kill_and_resume", name, "1", "4", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert len(report["kills"]) >= 2, "it ended before it could be killed: the test proves nothing"
    different = [what for what, value in report["whole"].items() if report["cut"].get(what) != value]
    assert different == []
    assert report["whole"].keys() == report["cut"].keys()
