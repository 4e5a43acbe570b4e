"""TensorFlow's events on our clock: the events of a call lie inside our span of that call."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.doctor.probes.recorder import GRAPH
from stoker.doctor.probes.session import Session
from stoker.doctor.probes.spans import Window
from stoker.doctor.probes.tensorflow_events import MAX_WINDOWS, ClockMarks, is_kept, window_events
from tests.doctor.probes.conftest import in_a_window

tf: Any = pytest.importorskip("tensorflow")

# Our span begins just before TensorFlow's event and ends just after it.
_TOLERANCE_NS = 20_000


def stepping_in_a_window(session: Session) -> None:
    weights = tf.Variable(tf.ones((200, 200)))

    @tf.function
    def train_step(x: Any) -> Any:
        weights.assign_sub(1e-9 * tf.matmul(x, weights))
        return tf.reduce_sum(weights)

    batch = tf.ones((200, 200))
    train_step(batch)
    in_a_window(session, lambda: train_step(batch), calls=10, ends=5)


def test_their_events_lie_inside_our_spans(session: Session) -> None:
    stepping_in_a_window(session)
    (window,) = session.windows.events
    # A window for the prices may have been open for a while: what it keeps, the one beside the profiler's does not.
    windows = [window.beside, *session.steps.windows.all()]
    spans = sorted((s.start, s.end) for w in windows for s in w.spans if s.account == GRAPH)
    assert len(window.beside.ends) >= 3
    first, last = window.beside.spans[0].start, window.beside.spans[-1].end
    checked = 0
    for thread, events in window.threads.items():
        for start, length, name in events:
            at = window.start_ns + start
            if name not in ("TFE_Py_ExecuteCancelable", "ExecutorState::Process") or not first < at < last:
                continue
            checked += 1
            ours = max(span for span in spans if span[0] - _TOLERANCE_NS <= at)
            assert at <= ours[1] + _TOLERANCE_NS, thread
            if name.startswith("TFE_"):
                # On the caller's own thread; one of the executor's may go on after it has said that it is done.
                assert at + length <= ours[1] + _TOLERANCE_NS
    assert checked >= 6


def test_marks_that_are_not_found_again_align_nothing() -> None:
    class Mark:
        def __init__(self, name: str) -> None:
            self.name = name

        def Stop(self) -> None:
            pass

    times = iter(range(0, 1000, 10))
    marks = ClockMarks(Mark, lambda: next(times))
    assert marks.zero_ns({}) is None
    # Eight marks: ours at 5, 25, 45 ..., theirs 1000 later.
    seen = [(1000 + 20 * n, 1010 + 20 * n, "stoker clock", "") for n in range(8)]
    assert marks.zero_ns({("", 1): ("python", seen)}) == -1000


def test_a_run_of_any_length_keeps_few_windows() -> None:
    kept = [number for number in range(100_000) if is_kept(number)]
    assert len(kept) == MAX_WINDOWS
    assert kept[:6] == [0, 1, 2, 3, 4, 8]
    assert MAX_WINDOWS == 12


def test_a_window_keeps_its_two_thousand_longest_events() -> None:
    def events(first: int) -> list[tuple[int, int, str, str]]:
        return [(10_000 * n, 10_000 * n + first + n, "op", "") for n in range(1500)]

    threads = {("/host:CPU", 1): ("python", events(first=1)), ("/host:CPU", 2): ("", events(first=1001))}
    kept = window_events(threads, 0, 1, Window(0, 0)).threads
    lengths = sorted(length for found in kept.values() for _, length, _ in found)
    of_all = [*range(1, 1501), *range(1001, 2501)]
    assert lengths == sorted(of_all)[-2000:]
    for found in kept.values():
        assert found == sorted(found)
