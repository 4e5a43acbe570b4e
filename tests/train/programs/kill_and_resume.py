"""Runs trainings to their end, then again in processes that are killed; prints how both ended, a line of JSON each.

    python -m tests.train.programs.kill_and_resume SEED KILLS DIRECTORY NAME...

The processes are forked before TensorFlow has started: each is a real one that dies of a real SIGKILL, without the
seconds that importing takes. A process is killed at a random moment after it has saved something new, every other one
while a file is being written.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from stoker.train.checkpoint.files import TEMPORARY
from tests.support import stop_when
from tests.train.programs.resume_runs import RUNS


def started(name: str, directory: Path) -> int:
    """A process of its own that trains and writes down how it ended."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        (directory / "end.json").write_text(json.dumps(RUNS[name](directory)))
        code = 0
    finally:
        # The copy of the test's own process must not go on from here, whatever happened.
        if code:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)


def wait_for(process: int) -> None:
    _, status = os.waitpid(process, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit("the training failed")


def newest(directory: Path) -> str:
    return max((path.name for path in directory.glob("checkpoints/*.stoker")), default="")


def being_written(directory: Path) -> bool:
    return any(directory.glob(f"checkpoints/*{TEMPORARY}"))


def killed(process: int, directory: Path, while_writing: bool, delay: float) -> dict[str, Any] | None:
    """Kill it once it has saved something new; None if it ended before."""
    before, saved_at = newest(directory), 0.0

    def the_moment() -> bool:
        nonlocal saved_at
        if not saved_at and newest(directory) != before:
            saved_at = time.monotonic()
        late_enough = saved_at > 0 and time.monotonic() - saved_at > delay
        return late_enough and (not while_writing or being_written(directory))

    if not stop_when(process, the_moment):
        wait_for(process)
        return None
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return {"newest": newest(directory), "while_writing": being_written(directory)}


def cut_and_whole(name: str, kills: int, moments: random.Random, directory: Path) -> dict[str, Any]:
    """How the training ends when it is left alone, and when it is killed and started again."""
    whole, cut = directory / "whole", directory / "cut"
    whole.mkdir(parents=True)
    cut.mkdir()
    left_alone = started(name, whole)
    history = []
    for number in range(kills):
        kill = killed(started(name, cut), cut, number % 2 == 1, moments.uniform(0, 0.05))
        if kill is None:
            break
        history.append(kill)
    else:
        wait_for(started(name, cut))
    wait_for(left_alone)
    ends = [json.loads((place / "end.json").read_text()) for place in (whole, cut)]
    return {"whole": ends[0], "cut": ends[1], "kills": history}


def main() -> None:
    seed, kills, directory = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    for name in sys.argv[4:]:
        moments = random.Random(f"{name} {seed}")
        print(json.dumps({name: cut_and_whole(name, kills, moments, directory / name)}), flush=True)


if __name__ == "__main__":
    main()
