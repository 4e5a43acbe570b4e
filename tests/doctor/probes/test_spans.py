"""Windows of spans: opened as steps end, bounded, and cut where spans nest."""

from __future__ import annotations

import pytest

from stoker import clock
from stoker.doctor.attach.sites import Sites
from stoker.doctor.probes.recorder import DISPATCH, EAGER, GRAPH, PYTHON, SYNC, Recorder
from stoker.doctor.probes.spans import MAX_SPANS, MAX_STEPS, MAX_WINDOWS, Window
from stoker.doctor.probes.steps import MAX_TIMES, TRAINING, Steps
from tests.doctor.probes.test_recorder import FakeClock

SITE = ("train.py", 42, "train")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    fake = FakeClock()
    monkeypatch.setattr(clock, "now_ns", fake)
    return fake


def books(fake: FakeClock) -> tuple[Recorder, Steps]:
    recorder = Recorder(0, Sites())
    recorder.rebase(PYTHON)
    return recorder, Steps(recorder)


def step(fake: FakeClock, recorder: Recorder, steps: Steps, spans: int = 1) -> None:
    """10 ns of Python, then `spans` reads of 5 ns."""
    fake.now += 10
    for _ in range(spans):
        started = recorder.enter(SYNC)
        fake.now += 5
        recorder.leave()
        if recorder.window is not None:
            recorder.window.label(started, SYNC, SITE, "numpy", 3)
    steps.tick(TRAINING, "loop", 1, 8, recorder.since)


def test_a_window_opens_after_two_steps_and_keeps_whole_steps(fake: FakeClock) -> None:
    recorder, steps = books(fake)
    for _ in range(5):
        step(fake, recorder, steps)
    (window,) = steps.windows.all()
    assert (window.start, [end for end, *_ in window.ends]) == (30, [45, 60, 75])
    first = [(s.start, s.end, s.account, s.site, s.wait) for s in window.spans[:2]]
    assert first == [(30, 40, PYTHON, None, 0), (40, 45, SYNC, SITE, 3)]


def test_windows_are_few_and_spread_over_the_run(fake: FakeClock) -> None:
    recorder, steps = books(fake)
    for _ in range(30_000):
        step(fake, recorder, steps)
    windows = steps.windows.all()
    assert 3 <= len(windows) <= MAX_WINDOWS + 1
    assert all(len(w.ends) <= MAX_STEPS and len(w.spans) <= MAX_SPANS for w in windows)
    assert windows[0].start == 30
    assert windows[-1].start > fake.now / 4


def test_step_times_are_thinned_evenly(fake: FakeClock) -> None:
    recorder, steps = books(fake)
    for _ in range(10_000):
        step(fake, recorder, steps)
    times = steps.phase().times
    assert MAX_TIMES / 2 <= len(times) <= MAX_TIMES
    assert set(times) == {15}


def test_a_step_that_overflows_the_window_ends_it(fake: FakeClock) -> None:
    recorder, steps = books(fake)
    for _ in range(5):
        step(fake, recorder, steps)
    step(fake, recorder, steps, spans=MAX_SPANS + 10)
    (window,) = steps.windows.kept
    assert window.full
    assert len(window.spans) == MAX_SPANS
    assert recorder.window is None


def test_the_phase_is_from_the_first_steps_end_to_the_lasts(fake: FakeClock) -> None:
    recorder, steps = books(fake)
    fake.now = 1000
    for _ in range(11):
        step(fake, recorder, steps)
    phase = steps.phase()
    assert (phase.steps, phase.ns) == (10, 150)
    assert (phase.totals["python"], phase.totals["sync"]) == (100, 50)


def test_a_stretch_of_eager_ops_is_one_span() -> None:
    window = Window(0, 0)
    stretch = (DISPATCH, EAGER)
    for start in range(0, 100, 10):
        window.add(start, start + 4, DISPATCH, stretch)
        window.add(start + 4, start + 10, EAGER, stretch)
    window.add(100, 120, GRAPH)
    assert [(s.start, s.end, s.account) for s in window.spans] == [(0, 100, EAGER), (100, 120, GRAPH)]


def test_a_label_is_for_the_spans_since_it_began() -> None:
    window = Window(0, 0)
    window.add(0, 10, PYTHON)
    window.add(10, 20, SYNC)
    window.add(20, 30, PYTHON)
    window.label(10, PYTHON, SITE, "Logger.on_train_batch_end")
    assert [span.site for span in window.spans] == [None, None, SITE]
