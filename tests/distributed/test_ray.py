"""A real Ray cluster on this machine: agents as actors, and a kill."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.distributed.support import launch, notes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no Ray (stoker[ray])"),
]


def test_a_job_on_ray_starts_again_when_a_worker_is_killed(tmp_path: Path) -> None:
    program = """
if restart == 0:
    if rank == 1: os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1000)
note("end", os.environ.get("TF_USE_LEGACY_KERAS", "no"))
print("worker", rank)
"""
    outcome = launch(tmp_path, program, "-n", "2", "--engine", "ray")
    assert outcome.code == 0, outcome.stderr
    assert sorted(outcome.stdout.splitlines()) == ["[0] worker 0", "[1] worker 1"]
    assert "worker 1 was killed by SIGKILL; restarting all workers (1 of 3)" in outcome.stderr
    assert notes(tmp_path, "end") == {(1, 0): "no", (1, 1): "no"}


def test_a_job_that_is_too_large_for_the_cluster_is_one_line(tmp_path: Path) -> None:
    outcome = launch(tmp_path, "", "-n", "500", "--engine", "ray")
    assert outcome.code == 1
    assert "stoker: the job needs 500 workers, and there is room for " in outcome.stderr
