"""Events of several processes, machines and boots, put on one clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.errors import UsageError
from stoker.goodput.accounts import TRAINING
from stoker.goodput.events import (
    ClockTied,
    Event,
    JobEnded,
    PhaseBegun,
    RoundBegun,
    RoundOver,
    RunResumed,
    StepsDone,
    WorkerEnded,
    decode,
    encode,
)
from stoker.goodput.fold import fold
from stoker.goodput.history import build_history, find_job

S = 1_000_000_000
HOUR = 3600 * S


def write(*events: Event) -> bytes:
    return b"".join(encode(event) for event in events)


def launched(boot: str = "a", began: int = 0) -> bytes:
    """One round of 20 seconds, from the second one on."""
    return write(
        ClockTied(began, 1000 * HOUR, boot),
        RoundBegun(began + 2 * S, 0, [0]),
        WorkerEnded(began + 21 * S, 0, 0),
        RoundOver(began + 22 * S, 0, "done", ""),
        JobEnded(began + 22 * S, True),
    )


def trained(boot: str, began: int, wall: int) -> bytes:
    """A process that begins 3 seconds after its round, and trains for 12."""
    at = began + 4 * S
    return write(
        ClockTied(began, wall, boot),
        PhaseBegun(at, TRAINING),
        RunResumed(at, "run", 0),
        StepsDone(at + 12 * S, "run", 0, 12, 12.0),
        PhaseBegun(at + 12 * S, "other"),
    )


@pytest.mark.parametrize(
    ("boot", "began", "wall"),
    [
        ("a", 5 * S, 1000 * HOUR + 5 * S),
        # Somebody has set the clock by an hour, forwards or backwards, before the worker started.
        ("a", 5 * S, 1001 * HOUR),
        ("a", 5 * S, 999 * HOUR),
        # Another machine, with an own monotonic clock and the same time of day.
        ("b", 7 * HOUR, 1000 * HOUR + 5 * S),
    ],
)
def test_clocks_that_differ_move_nothing(boot: str, began: int, wall: int) -> None:
    files = {"launch.events": launched(), "worker-0-0.events": trained(boot, began, wall)}
    ledger = fold("job", build_history(files, "job"))
    assert ledger.accounts["productive"] == pytest.approx(12)
    assert ledger.accounts["startup"] == pytest.approx(9)
    assert ledger.accounts["idle"] == pytest.approx(1)
    assert ledger.wall_s == pytest.approx(22)


@pytest.mark.parametrize("wall", [1001 * HOUR, 999 * HOUR])
def test_a_machine_with_another_time_of_day_is_moved_into_its_round(wall: int) -> None:
    files = {"launch.events": launched(), "worker-0-0.events": trained("b", 7 * HOUR, wall)}
    ledger = fold("job", build_history(files, "job"))
    assert ledger.accounts["productive"] == pytest.approx(12, abs=1.1)
    assert sum(ledger.accounts.values()) == pytest.approx(ledger.wall_s)


def test_a_line_that_was_cut_short_or_is_unknown_is_left_out() -> None:
    whole: list[Event] = [ClockTied(1, 2, "a"), PhaseBegun(3, "saving", "train.py:1")]
    more = b'{"say":"comet","at":4}\nnonsense\n{"say":"phase"}\n17\n'
    assert decode(write(*whole) + more + b'{"say":"phase","at":5,"ph') == whole
    # A newer version may say more of an event.
    assert decode(b'{"say":"end","at":5,"done":true,"mood":"good"}\n') == [JobEnded(5, True)]


def test_launchers_that_a_scheduler_starts_have_rounds_together() -> None:
    def one(rank: int, line: str) -> bytes:
        return write(
            ClockTied(rank * S, 1000 * HOUR + rank * S, "a"),
            RoundBegun((1 + rank) * S, 3, [rank]),
            RoundOver((9 + rank) * S, 3, "fault", line),
            JobEnded((10 + rank) * S, False),
        )

    files = {"launch-3-0.events": one(0, ""), "launch-3-1.events": one(1, "worker 1 died")}
    history = build_history(files, "job")
    (found,) = history.rounds
    assert (found.ranks, found.began, found.over, found.line) == ([0, 1], S, 10 * S, "worker 1 died")
    assert (history.ended, history.done) == (11 * S, False)


def test_jobs_are_found_by_the_beginning_of_their_ids(tmp_path: Path) -> None:
    for name in ("20261118-1", "20261118-12", "20261119-1"):
        (tmp_path / name / "events").mkdir(parents=True)
    assert find_job(tmp_path, "20261119") == tmp_path / "20261119-1"
    assert find_job(tmp_path, "20261118-1") == tmp_path / "20261118-1"
    assert find_job(tmp_path, "20261118") is None
    assert find_job(tmp_path, "20261119", exactly=True) is None
    assert find_job(tmp_path, "../other") is None


def test_a_job_without_files_of_its_launcher_is_refused() -> None:
    with pytest.raises(UsageError, match="the job job has no events"):
        build_history({"worker-0-0.events": trained("a", 0, 0)}, "job")
