"""Weights on a parameter server: a coordinator, two workers, and one of them killed while it trains."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import wait_until
from tests.train.workers.jobs import ServedJob

pytestmark = pytest.mark.tensorflow


@pytest.mark.slow
def test_the_count_is_exact_though_a_worker_is_killed(tmp_path: Path) -> None:
    job = ServedJob("served.py", 2, tmp_path, str(tmp_path))
    try:
        wait_until(lambda: (tmp_path / "begun").exists() or job.processes[0].poll() is not None)
        job.processes[3].kill()
        job.processes[3].wait()
        found = job.result()
    finally:
        job.kill()
    # 101 steps an epoch, the last of three rows.
    assert found["steps"] == found["iterations"] == 6 * 101
    assert found["history"]["val_loss"][-1] < 0.2, "of labels whose variance is 4"
    assert len(found["refused"]) == 3
    assert all("ParameterServerStrategy" in line and "\n" not in line for line in found["refused"])
