"""The ledger of a job's time: two real workers, killed twice while they train."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stoker.goodput.fold import fold
from stoker.goodput.history import find_job, read_history
from tests.launch.support import start_job, wait_for_notes
from tests.support import Outcome, run, wait_until
from tests.train.workers.jobs import PROGRAMS
from tests.train.workers.programs.resumes import BATCH, EPOCHS, ROWS

pytestmark = pytest.mark.tensorflow

PROGRAM = f"""
import runpy
sys.argv = ["resumes.py", os.getcwd(), "1"]
runpy.run_path({str(PROGRAMS / "resumes.py")!r}, run_name="__main__")
"""


def newest_step(directory: Path) -> int:
    """The step of the newest complete checkpoint."""
    newest = max((directory / "run").glob("*.stoker"), key=lambda path: path.name)
    return int(newest.stem.rpartition("-")[2])


def show(directory: Path, *words: str) -> Outcome:
    return run(
        [sys.executable, "-m", "stoker", "runs", "show", *words, "--price", "3.20/h"],
        directory,
    )


def kill_at_the_gate(directory: Path, job: subprocess.Popen[str]) -> int:
    """Kill worker 1 while it waits; the step of the newest checkpoint then. Returns once the workers are back."""
    while True:
        wait_until(lambda: (directory / "reached").exists() or job.poll() is not None)
        assert job.poll() is None, job.communicate()
        (directory / "reached").unlink()
        restart = max(int(path.name.split("-")[1]) for path in directory.glob("pid-*-1"))
        kept = newest_step(directory)
        try:
            os.kill(int((directory / f"pid-{restart}-1").read_text()), signal.SIGKILL)
        except ProcessLookupError:
            # On a machine too busy for TensorFlow's own heartbeat, the job has restarted by itself.
            continue
        wait_for_notes(directory, "pid", 2, restart + 1)
        return kept


@pytest.mark.slow
def test_a_job_that_is_killed_twice_keeps_one_ledger(tmp_path: Path) -> None:
    at_gate = 2 * -(-ROWS // BATCH)
    with start_job(tmp_path, PROGRAM, "-n", "2", "--ledger", "--max-restarts", "9") as job:
        kept = [kill_at_the_gate(tmp_path, job) for _ in range(2)]
        (tmp_path / "go").touch()
        _, stderr = job.communicate()
    assert job.returncode == 0, stderr
    found = find_job(tmp_path / ".stoker" / "jobs", "2")
    assert found is not None
    ledger = fold(found.name, read_history(found))
    assert sum(ledger.accounts.values()) == pytest.approx(ledger.wall_s, rel=1e-3)
    assert (ledger.state, ledger.workers) == ("done", 2)
    assert ledger.restarts >= 2
    assert ledger.steps == EPOCHS * -(-ROWS // BATCH)
    if ledger.restarts == 2:
        assert ledger.lost_steps <= sum(at_gate - step for step in kept)
    for account in (
        "productive",
        "recomputed",
        "startup",
        "compiling",
        "restoring",
        "saving",
        "peers",
        "idle",
    ):
        assert ledger.accounts[account] > 0, account
    times = {cause.what: cause.times for cause in ledger.causes}
    assert times["worker 1 was killed by SIGKILL"] == 2
    assert {loss.line.rpartition(":")[0] for loss in ledger.by_line} == {str(PROGRAMS / "resumes.py")}
    shown = show(tmp_path, found.name)
    assert shown.code == 0
    goodput = next(line for line in shown.stdout.splitlines() if line.startswith("goodput "))
    assert f"{ledger.goodput:.1%}" in goodput
    told = json.loads(show(tmp_path, found.name, "--json").stdout)
    assert told["costs"]["productive"] == pytest.approx(ledger.worker_s["productive"] * 3.2 / 3600, abs=1e-6)
