"""An elastic job that really trains: new room is taken at a save of all workers, and every row comes once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.launch.support import read_notes, start_job, wait_for_notes
from tests.support import wait_until
from tests.train.workers.jobs import PROGRAMS
from tests.train.workers.programs.resumes import EPOCHS

pytestmark = pytest.mark.tensorflow

# It trains, waits at the end of the second epoch, and notes when the launcher asks it to leave.
PROGRAM = f"""
import runpy, threading
reads, writes = os.pipe()
os.set_blocking(writes, False)
signal.set_wakeup_fd(writes)
threading.Thread(target=lambda: os.read(reads, 1) and note("asked"), daemon=True).start()
sys.argv = ["resumes.py", os.getcwd(), "1"]
runpy.run_path({str(PROGRAMS / "resumes.py")!r}, run_name="__main__")
"""


@pytest.mark.slow
def test_a_new_machine_is_taken_at_a_save_and_every_row_comes_once(tmp_path: Path) -> None:
    rooms = tmp_path / "rooms"
    rooms.write_text("localhost:1\n")
    with start_job(tmp_path, PROGRAM, "-n", "1:2", "--discover", "cat rooms", "--max-restarts", "0") as job:
        wait_until(lambda: (tmp_path / "reached").exists() or job.poll() is not None)
        assert job.poll() is None, job.communicate()
        rooms.write_text("localhost:2\n")
        wait_for_notes(tmp_path, "asked", 1)
        (tmp_path / "go").touch()
        stdout, stderr = job.communicate()
    assert job.returncode == 0, stderr
    assert "the available machines have changed; restarting all workers" in stderr
    assert set(read_notes(tmp_path, "pid")) == {(0, 0), (1, 0), (1, 1)}
    found = [json.loads(line.partition("] ")[2]) for line in stdout.splitlines() if '"bits"' in line]
    assert len(found) == 2
    assert found[0]["bits"] == found[1]["bits"]
    assert found[0]["history"]["wrong"] == [0.0] * EPOCHS, "every row once an epoch"
