"""The queue before an engine: nobody waits for company, everybody gets their own answer."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from stoker.serve.batching import BusyError, CallerQueue, DeadlineError
from stoker.serve.rows import InputRows
from tests.support import HANGS_S, wait_until


class Gated:
    """An engine that stops in its first call until it may go on, and notes how many rows each call had."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.entered, self.go = threading.Event(), threading.Event()

    def run(self, arrays: list[Any]) -> list[Any]:
        self.calls.append(len(arrays[0]))
        if len(self.calls) == 1:
            self.entered.set()
            assert self.go.wait(HANGS_S)
        if (arrays[0] < 0).any():
            raise ValueError("a negative row")
        return [arrays[0] * 2]


@pytest.fixture
def engine() -> Gated:
    return Gated()


def rows_of(array: Any) -> InputRows:
    return InputRows([array], len(array), False)


def asked(
    queue: CallerQueue, found: dict[int, Any], number: int, shape: tuple[int, ...] = (1, 2)
) -> threading.Thread:
    """A thread that asks for rows of this number, and what it was told."""

    def ask() -> None:
        try:
            found[number] = queue.ask(rows_of(np.full(shape, number)))
        except (ValueError, BusyError) as error:
            found[number] = error

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def test_who_waits_is_answered_together(engine: Gated) -> None:
    queue, found = CallerQueue(engine.run, 100, 100), dict[int, Any]()
    threads = [asked(queue, found, 0)]
    assert engine.entered.wait(HANGS_S)
    for place, (number, shape) in enumerate([*((n, (1, 2)) for n in (*range(1, 9), -1)), (50, (3, 4))], 1):
        threads.append(asked(queue, found, number, shape))
        wait_until(lambda place=place: len(queue._waiting) == place)  # type: ignore[misc]
    engine.go.set()
    for thread in threads:
        thread.join(HANGS_S)
    for number in range(9):
        assert (found[number][0] == 2 * number).all()
    assert str(found[-1]) == "a negative row"
    assert found[50][0].shape == (3, 4)
    # One alone; then all that fit into one array, which fails and is run one by one; another shape by itself.
    assert engine.calls == [1, 9, *[1] * 9, 3]
    assert not queue._busy
    assert queue.ask(rows_of(np.ones((1, 2))))[0].sum() == 4


def test_batches_are_not_larger_than_they_may_be(engine: Gated) -> None:
    queue, found = CallerQueue(engine.run, 4, 100), dict[int, Any]()
    threads = [asked(queue, found, 0)]
    assert engine.entered.wait(HANGS_S)
    threads += [asked(queue, found, number) for number in range(1, 11)]
    wait_until(lambda: len(queue._waiting) == 10)
    engine.go.set()
    for thread in threads:
        thread.join(HANGS_S)
    assert engine.calls == [1, 4, 4, 2]


def test_a_full_queue_refuses_and_a_late_caller_leaves(engine: Gated) -> None:
    queue, found = CallerQueue(engine.run, 100, 2), dict[int, Any]()
    threads = [asked(queue, found, 0)]
    assert engine.entered.wait(HANGS_S)
    with pytest.raises(DeadlineError, match=r"no answer within 0\.01 s"):
        queue.ask(rows_of(np.ones((1, 2))), timeout=0.01)
    assert queue.rows == 0
    threads += [asked(queue, found, number) for number in (1, 2)]
    wait_until(lambda: queue.rows == 2)
    with pytest.raises(BusyError, match=r"Queue full \(2 rows\)"):
        queue.ask(rows_of(np.ones((1, 2))))
    engine.go.set()
    for thread in threads:
        thread.join(HANGS_S)
    assert engine.calls == [1, 2]
    assert (found[2][0] == 4).all()


def test_who_leaves_while_chosen_runs_for_the_others(engine: Gated) -> None:
    queue, found = CallerQueue(engine.run, 100, 100), dict[int, Any]()
    first = asked(queue, found, 0)
    assert engine.entered.wait(HANGS_S)
    threads = [asked(queue, found, number) for number in (1, 2)]
    wait_until(lambda: len(queue._waiting) == 2)
    gone = queue._waiting[0]
    # As if its thread were interrupted at the moment it was chosen.
    queue._waiting.popleft()
    gone.batch = [gone, queue._waiting.popleft()]
    queue.rows = 0
    leaving = gone.batch
    queue._withdraw(gone)
    assert leaving[1].answers is not None
    assert gone.answers is None
    gone.error = ValueError("interrupted")
    gone.woken.set()
    engine.go.set()
    for thread in (first, *threads):
        thread.join(HANGS_S)
    assert queue.ask(rows_of(np.ones((1, 2))))[0].sum() == 4
