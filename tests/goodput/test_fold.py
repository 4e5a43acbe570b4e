"""Ledgers of jobs, folded from events made by hand. Times are in seconds; a step takes one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.goodput.accounts import ACCOUNTS, MEANINGS, TRAINING
from stoker.goodput.events import CheckpointCounted, PhaseBegun, RunResumed, StepsDone, WorkerEvent
from stoker.goodput.fold import FIRST_START, fold
from stoker.goodput.history import JobHistory, RoundHistory, WorkerHistory
from stoker.goodput.ledger import JobLedger

S = 1_000_000_000


def phase(at: float, name: str, line: str = "") -> PhaseBegun:
    return PhaseBegun(int(at * S), name, line)


def resumed(at: float, step: int, run: str = "run") -> RunResumed:
    return RunResumed(int(at * S), run, step)


def steps(at: float, first: int, last: int, seconds: float | None = None, **more: Any) -> StepsDone:
    spent = float(last - first) if seconds is None else seconds
    return StepsDone(int(at * S), "run", first, last, spent, **more)


def counted(at: float, step: int) -> CheckpointCounted:
    return CheckpointCounted(int(at * S), "run", step)


def training(at: float, first: int, last: int, startup: float = 2.0) -> list[WorkerEvent]:
    """A process that begins to train, `startup` seconds after `at`, and does these steps in one go."""
    begin = at + startup
    done = steps(begin + last - first, first, last)
    return [phase(begin, TRAINING, "train.py:7"), resumed(begin, first), done]


def worker(
    number: int, rank: int, began: float, events: Sequence[WorkerEvent], ended: float | None = None
) -> WorkerHistory:
    return WorkerHistory(
        number, rank, int(began * S), list(events), None if ended is None else int(ended * S)
    )


def rounds(*spans: tuple[float, float | None, str], ranks: tuple[int, ...] = (0,)) -> list[RoundHistory]:
    return [
        RoundHistory(
            number,
            list(ranks),
            int(began * S),
            None if over is None else int(over * S),
            "fault" if line else "done",
            line,
        )
        for number, (began, over, line) in enumerate(spans)
    ]


def make(
    spans: list[RoundHistory], workers: list[WorkerHistory], ended: float | None = None, done: bool = True
) -> JobLedger:
    history = JobHistory(0, spans, workers, None if ended is None else int(ended * S), done)
    ledger = fold("job", history)
    check_sums(ledger)
    return ledger


def check_sums(ledger: JobLedger) -> None:
    assert sum(ledger.accounts.values()) == pytest.approx(ledger.wall_s, rel=1e-9)
    assert all(seconds >= 0 for seconds in ledger.accounts.values())
    for spent in ledger.by_worker.values():
        assert sum(spent.values()) <= ledger.wall_s * (1 + 1e-9)
    lost = sum(cause.seconds for cause in ledger.causes)
    assert lost + ledger.accounts["productive"] == pytest.approx(ledger.wall_s, rel=1e-9)


def near(value: float) -> Any:
    return pytest.approx(value)


def spent(ledger: JobLedger) -> dict[str, Any]:
    """The accounts that are not empty."""
    return {name: near(value) for name, value in ledger.accounts.items() if value > 1e-9}


def causes(ledger: JobLedger) -> dict[str, Any]:
    return {cause.what: near(cause.seconds) for cause in ledger.causes}


def test_a_job_without_faults() -> None:
    events = [*training(1, 0, 10), phase(13, "saving", "train.py:7"), phase(14, TRAINING, "train.py:7")]
    events += [steps(20, 10, 14, data_s=1.5, peers_s=0.25), phase(21, "other")]
    ledger = make(rounds((1, 22, "")), [worker(0, 0, 1.5, events, 22)], ended=23)
    assert spent(ledger) == {
        "productive": 14,
        "startup": 3,
        "saving": 1,
        "data": 1.5,
        "peers": 0.25,
        # What is left of six seconds with steps, a second of the loop's, and a second of the program's own.
        "other": 2.25,
        "idle": 1,
    }
    assert (ledger.goodput, ledger.steps, ledger.state) == (near(14 / 23), 14, "done")
    assert ledger.curve[-1].so_far == pytest.approx(14 / 23)
    lines = {(loss.line, loss.account): loss.seconds for loss in ledger.by_line}
    assert lines["train.py:7", "saving"] == pytest.approx(1)


def test_steps_after_the_last_checkpoint_were_lost() -> None:
    # Ten steps, of which six were saved; killed two seconds into the next call.
    first = worker(0, 0, 0, training(0, 0, 10), ended=14)
    second = worker(1, 0, 20, [*training(20, 6, 16), phase(32, "other")], ended=32)
    why = "worker 0 was killed by SIGKILL"
    ledger = make(rounds((0, 15, why), (20, 32, "")), [first, second], ended=32)
    assert spent(ledger) == {"productive": 16, "recomputed": 4 + 2, "startup": 4, "idle": 6}
    assert (ledger.steps, ledger.lost_steps, ledger.restarts) == (16, 4, 1)
    assert causes(ledger) == {why: 6 + 6 + 2, FIRST_START: 2}


def test_a_worker_killed_in_the_middle_of_a_save() -> None:
    saves = [*training(0, 0, 10), phase(12, "saving")]
    second = training(20, 0, 10)
    ledger = make(
        rounds((0, 18, "it died"), (20, 32, "")),
        [worker(0, 0, 0, saves, ended=17), worker(1, 0, 20, second, ended=32)],
        ended=32,
    )
    assert spent(ledger) == {"productive": 10, "recomputed": 10, "startup": 4, "saving": 5, "idle": 3}


def test_a_worker_that_never_started() -> None:
    # Its peers waited for it until the deadline.
    waits = [phase(1, "peers")]
    why = "worker 1 did not start within 30 s"
    ledger = make(
        rounds((0, 30, why), (31, 40, ""), ranks=(0, 1)),
        [worker(0, 0, 0.5, waits), *(worker(1, rank, 31, training(31, 0, 7), 40) for rank in (0, 1))],
        ended=40,
    )
    assert spent(ledger) == {"productive": 7, "startup": (1 + 30) / 2 + 2, "peers": 29 / 2, "idle": 1}
    assert ledger.by_worker[1]["startup"] == pytest.approx(32)
    assert causes(ledger) == {FIRST_START: 30, why: 1 + 2}


def test_a_worker_that_goes_on_while_the_next_round_starts() -> None:
    # Nobody saw the end of the first: it noted steps long after its round was over.
    first = worker(0, 0, 0, [*training(0, 0, 5), steps(12, 5, 10)])
    second = worker(1, 0, 10, training(10, 5, 10))
    ledger = make(rounds((0, 9, "lost the agent on a"), (10, 17, "")), [first, second], ended=17)
    # The steps that it noted too late are cut off where its round ends, and were done again.
    assert spent(ledger) == {"productive": 10, "recomputed": 2, "startup": 4, "idle": 1}


def test_a_job_that_was_given_up_keeps_what_its_checkpoint_has() -> None:
    died = [*training(0, 0, 10), counted(9, 6), phase(12, "other")]
    ledger = make(rounds((0, 12, "it died")), [worker(0, 0, 0, died, 12)], ended=12, done=False)
    assert spent(ledger) == {"productive": 6, "recomputed": 4, "startup": 2}
    assert ledger.state == "failed"
    without = [event for event in died if not isinstance(event, CheckpointCounted)]
    ledger = make(rounds((0, 12, "it died")), [worker(0, 0, 0, without, 12)], ended=12, done=False)
    assert spent(ledger) == {"recomputed": 10, "startup": 2}
    assert ledger.goodput == 0


def test_a_run_that_goes_back_behind_a_spike_loses_the_steps_between() -> None:
    events = [*training(0, 0, 10), resumed(12, 4), steps(20, 4, 12), phase(20, "other")]
    ledger = make(rounds((0, 20, "")), [worker(0, 0, 0, events, 20)], ended=20)
    assert spent(ledger) == {"productive": 12, "recomputed": 6, "startup": 2}
    assert "training went back to an earlier step" in causes(ledger)


def test_a_call_that_compiles_is_divided_by_what_steps_take() -> None:
    first: list[WorkerEvent] = [phase(2, TRAINING), resumed(2, 0)]
    first += [steps(12, 0, 4, 10.0, cold=True), phase(12, "other")]
    warm = [*first[:-1], steps(20, 4, 12), phase(20, "other")]
    ledger = make(rounds((0, 20, "")), [worker(0, 0, 0, warm, 20)], ended=20)
    assert spent(ledger) == {"productive": 12, "compiling": 6, "startup": 2}
    # No other call says what a step takes.
    ledger = make(rounds((0, 12, "")), [worker(0, 0, 0, first, 12)], ended=12)
    assert spent(ledger) == {"compiling": 10, "startup": 2}


def test_a_job_that_still_runs_is_shown_up_to_its_last_event() -> None:
    events = training(0, 0, 5)
    ledger = make(rounds((0, None, "")), [worker(0, 0, 0, [*events, steps(9, 5, 7)])])
    assert spent(ledger) == {"productive": 7, "startup": 2}
    assert ledger.state == "running"


def test_workers_that_come_and_go_count_in_their_rounds() -> None:
    spans = [
        replace(rounds((0, 10, "the available machines have changed"))[0], ranks=[0, 1, 2]),
        replace(rounds((10, 20, ""))[0], number=1),
    ]
    first = [worker(0, rank, 0, [*training(0, 0, 8), counted(10, 8)], 10) for rank in range(3)]
    ledger = make(spans, [*first, worker(1, 0, 10, training(10, 8, 16), 20)], ended=20)
    assert spent(ledger) == {"productive": 16, "startup": 4}
    assert sum(ledger.worker_s.values()) == pytest.approx(3 * 10 + 10)
    assert ledger.workers == 3


def test_a_job_that_reported_no_step_has_no_goodput() -> None:
    ledger = make(rounds((1, 5, "")), [worker(0, 0, 1, [], 5)], ended=5)
    assert (ledger.goodput, spent(ledger)) == (None, {"startup": 5})
    assert make([], [], ended=3, done=False).goodput is None


_EVENTS = st.one_of(
    st.builds(phase, st.floats(0, 60), st.sampled_from([TRAINING, "unknown", *MEANINGS])),
    st.builds(resumed, st.floats(0, 60), st.integers(0, 50)),
    st.builds(counted, st.floats(0, 60), st.integers(0, 50)),
    st.builds(
        lambda at, first, more, seconds, data, cold: steps(
            at, first, first + more, seconds, data_s=data, cold=cold
        ),
        st.floats(0, 60),
        st.integers(0, 50),
        st.integers(0, 50),
        st.floats(0, 60),
        st.floats(0, 60),
        st.booleans(),
    ),
)
_NOTED = st.lists(_EVENTS, max_size=12)


@given(st.lists(st.tuples(_NOTED, _NOTED, st.one_of(st.none(), st.floats(0, 60))), max_size=4), st.booleans())
def test_whatever_was_noted_the_accounts_sum_to_the_wall_time(
    noted: list[tuple[list[WorkerEvent], list[WorkerEvent], float | None]], done: bool
) -> None:
    spans = rounds(*((12 * n, 12 * n + 10, "a fault") for n in range(len(noted))), ranks=(0, 1))
    workers = [
        worker(number, rank, 12 * number, events, ended)
        for number, (one, other, ended) in enumerate(noted)
        for rank, events in enumerate((one, other))
    ]
    ledger = make(spans, workers, ended=50.0, done=done)
    assert set(ledger.accounts) == set(ACCOUNTS)
