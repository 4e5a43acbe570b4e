"""The files of a job with two workers, one of which was killed: of 100 seconds, 60 are productive and 19 were lost."""

from __future__ import annotations

from pathlib import Path

from stoker.goodput.accounts import TRAINING
from stoker.goodput.diary import EVENTS
from stoker.goodput.events import (
    CheckpointCounted,
    ClockTied,
    Event,
    JobEnded,
    PhaseBegun,
    RoundBegun,
    RoundOver,
    RunResumed,
    StepsDone,
    WorkerEnded,
    encode,
)

S = 1_000_000_000
KILLED = "worker 1 was killed by SIGKILL"
LINE = "train.py:12"


def write_job(jobs: Path, name: str = "20261118-195126-c7139d49", line: str = LINE) -> Path:
    """Write the events of the job; a step takes a second."""
    directory = jobs / name / EVENTS
    directory.mkdir(parents=True)

    def write(file: str, begin: int, *events: Event) -> None:
        tied = ClockTied(begin * S, begin * S, "boot")
        (directory / f"{file}.events").write_bytes(b"".join(map(encode, (tied, *events))))

    def train(begin: int, first: int, last: int) -> list[Event]:
        done = [
            StepsDone((begin + step - first) * S, "run", step - 1, step, 1.0)
            for step in range(first + 1, last + 1)
        ]
        return [PhaseBegun(begin * S, TRAINING, line), RunResumed(begin * S, "run", first), *done]

    ends = [WorkerEnded(50 * S, 0, rank) for rank in (0, 1)]
    write(
        "launch",
        0,
        RoundBegun(0, 0, [0, 1]),
        *ends,
        RoundOver(50 * S, 0, "fault", KILLED),
        RoundBegun(51 * S, 1, [0, 1]),
        *(WorkerEnded(100 * S, 1, rank) for rank in (0, 1)),
        RoundOver(100 * S, 1, "done", ""),
        JobEnded(100 * S, True),
    )
    for rank in (0, 1):
        write(f"worker-0-{rank}", 0, *train(10, 0, 40), CheckpointCounted(41 * S, "run", 21))
        write(f"worker-1-{rank}", 51, *train(61, 21, 60))
    return jobs / name
