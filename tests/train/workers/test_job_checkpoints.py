"""A job that is killed, asked to leave, damaged, and started again with other numbers of workers."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import ALL_CASES, wait_until
from tests.train.workers.jobs import Job

pytestmark = pytest.mark.tensorflow


def run(directory: Path, workers: int) -> list[Any]:
    job = Job("resumes.py", workers, directory, str(directory))
    try:
        return job.results()
    finally:
        job.kill()


def interrupted(directory: Path, workers: int, epoch: int, victim: int, number: signal.Signals) -> list[int]:
    """Start a job, send a signal to one of its workers at the end of an epoch; the exit codes."""
    for name in ("reached", "go"):
        (directory / name).unlink(missing_ok=True)
    job = Job("resumes.py", workers, directory, str(directory), str(epoch))
    try:
        wait_until(lambda: (directory / "reached").exists() or job.processes[0].poll() is not None)
        assert (directory / "reached").exists(), job.output(0)
        job.processes[victim].send_signal(number)
        (directory / "go").touch()
        return job.wait()
    finally:
        job.kill()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    chief, other = run(tmp_path_factory.mktemp("undisturbed"), 2)
    assert chief["bits"] == other["bits"]
    assert chief["history"]["wrong"] == [0.0] * 4, "every row once an epoch"
    return chief


@pytest.mark.slow
def test_a_killed_worker_costs_no_bit(tmp_path: Path, undisturbed: Any) -> None:
    codes = interrupted(tmp_path, 2, 2, 1, signal.SIGKILL)
    assert codes[1] == -signal.SIGKILL
    assert codes[0] not in (0, 75), "the other worker cannot go on alone"
    names = sorted(path.name for path in (tmp_path / "run").glob("*.stoker"))
    assert len(names) == 3
    # The newest is cut short, and a part of the one before is gone: the third is used, by both workers.
    newest, before = (tmp_path / "run" / name for name in reversed(names[1:]))
    newest.write_bytes(newest.read_bytes()[:-100])
    next((tmp_path / "run" / "parts").glob(f"{before.stem}.worker-1*")).unlink()
    for found in run(tmp_path, 2):
        assert found["bits"] == undisturbed["bits"]
        assert found["history"] == undisturbed["history"]


@pytest.mark.slow
def test_a_job_that_is_asked_to_leave_saves_and_goes_on_alone(tmp_path: Path) -> None:
    assert interrupted(tmp_path, 2, 1, 1, signal.SIGTERM) == [75, 75]
    # At the end of the second epoch: all of its 21 steps are saved.
    newest = max(path.name for path in (tmp_path / "run").glob("*.stoker"))
    assert newest.endswith("-step-42.stoker")
    (found,) = run(tmp_path, 1)
    assert found["history"]["wrong"] == [0.0] * 4, "every row once an epoch"


@pytest.mark.slow
def test_ctrl_c_that_a_launcher_passes_on_saves_as_well(tmp_path: Path) -> None:
    # Whoever started the tests in the background had SIGINT ignored, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert interrupted(tmp_path, 1, 0, 0, signal.SIGINT) == [75]
    finally:
        signal.signal(signal.SIGINT, before)
    newest = max(path.name for path in (tmp_path / "run").glob("*.stoker"))
    assert newest.endswith("-step-21.stoker")


@pytest.mark.skipif(not ALL_CASES, reason="make soak-cases: more of the same, five more processes")
def test_a_job_goes_on_with_any_number_of_workers(tmp_path: Path, undisturbed: Any) -> None:
    assert interrupted(tmp_path, 2, 0, 1, signal.SIGTERM) == [75, 75]
    same = tmp_path / "same"
    shutil.copytree(tmp_path / "run", same / "run")
    assert [found["bits"] for found in run(same, 2)] == [undisturbed["bits"]] * 2
    assert interrupted(tmp_path, 1, 2, 0, signal.SIGTERM) == [75]
    chief, other = run(tmp_path, 2)
    assert chief["bits"] == other["bits"]
    assert chief["history"]["wrong"] == [0.0] * 4, "every row once an epoch"
    assert np.allclose(chief["history"]["val_loss"], undisturbed["history"]["val_loss"], rtol=0.2)
