"""The books: every nanosecond on one account, whatever the nesting."""

from __future__ import annotations

import threading

import pytest

from stoker import clock
from stoker.doctor.attach.sites import Sites
from stoker.doctor.probes.recorder import DISPATCH, MAX_SITES, PYTHON, STARTUP, SYNC, TRACE, Recorder


class FakeClock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    fake = FakeClock()
    monkeypatch.setattr(clock, "now_ns", fake)
    return fake


def test_time_belongs_to_the_innermost_span(fake: FakeClock) -> None:
    recorder = Recorder(0, Sites())
    fake.now = 10
    recorder.rebase(PYTHON)
    fake.now = 15
    recorder.enter(DISPATCH)
    fake.now = 22
    recorder.enter(SYNC)
    fake.now = 40
    recorder.leave()
    fake.now = 41
    recorder.leave()
    fake.now = 50
    totals, now = recorder.read_balances()
    assert now == 50
    assert (totals[STARTUP], totals[PYTHON], totals[DISPATCH], totals[SYNC]) == (10, 5 + 9, 7 + 1, 18)
    assert sum(totals) == 50


def test_an_open_span_is_charged_up_to_now(fake: FakeClock) -> None:
    recorder = Recorder(0, Sites())
    fake.now = 5
    recorder.enter(TRACE)
    fake.now = 30
    totals, _ = recorder.read_balances()
    assert (totals[STARTUP], totals[TRACE]) == (5, 25)


def test_rebase_inside_a_span_changes_what_it_returns_to(fake: FakeClock) -> None:
    recorder = Recorder(0, Sites())
    recorder.enter(STARTUP)
    recorder.rebase(PYTHON)
    fake.now = 7
    recorder.leave()
    fake.now = 9
    totals, _ = recorder.read_balances()
    assert (totals[STARTUP], totals[PYTHON]) == (7, 2)


def test_leaving_more_often_than_entering_does_not_raise(fake: FakeClock) -> None:
    recorder = Recorder(0, Sites())
    recorder.leave()
    assert recorder.top == PYTHON


def test_sites_are_bounded(fake: FakeClock) -> None:
    recorder = Recorder(0, Sites())
    for line in range(MAX_SITES + 500):
        recorder.tally("sync", ("made.py", line, "f")).count += 1
    tallies = recorder.tallies["sync"]
    assert len(tallies) == MAX_SITES + 1
    assert sum(tally.count for tally in tallies.values()) == MAX_SITES + 500


def test_balances_are_consistent_while_the_main_thread_works() -> None:
    recorder = Recorder(clock.now_ns(), Sites())
    sums: list[int] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            totals, now = recorder.read_balances()
            sums.append(now - recorder.start_ns - sum(totals))

    thread = threading.Thread(target=watch)
    thread.start()
    for _ in range(20_000):
        recorder.enter(SYNC)
        recorder.leave()
    done.set()
    thread.join()
    assert sums
    # A reader may see a total just before or after it was charged: never more than one span off.
    assert max(abs(s) for s in sums) < 50_000_000
