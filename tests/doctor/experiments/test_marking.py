"""Marked steps: what of a step is whose, whatever interrupts it."""

from __future__ import annotations

import pytest
import tensorflow as tf

from stoker.doctor.experiments.marking import (
    LEAST_MARKS,
    MOST_MARKS,
    MarkedStep,
    Marking,
    OwnOps,
    is_marked_tick,
    part_of,
)
from stoker.doctor.probes.recorder import ACCOUNT_NAMES, TRACE
from tests.doctor.experiments.recorded import record_step

MS = 1_000_000


def marked(tick: int, gaps: list[float], runs: list[float], python: list[float] | None = None) -> MarkedStep:
    """A step of ops that run for `runs` milliseconds, with `gaps` before each of them and at the end."""
    now = start = tick * 1000 * MS
    began, ended = [], []
    for gap, run in zip(gaps, runs, strict=False):
        began.append(now := now + int(gap * MS))
        ended.append(now := now + int(run * MS))
    own = [int(ms * MS) for ms in python or [0.0] * len(runs)]
    return MarkedStep(tick, start, now + int(gaps[-1] * MS), began, ended, own, cpu={}, python_cpu={})


def part_ms(marks: list[MarkedStep], ops: int, own: OwnOps) -> tuple[float, float]:
    """Milliseconds of the first step, and of its part."""
    part = part_of(marks, ops, own)
    assert part is not None
    return part.step_s[0] * 1e3, part.part_s[0] * 1e3


def test_an_op_counts_with_the_python_before_it_and_the_last_one_with_what_follows() -> None:
    marks = [marked(tick, [1, 2, 4, 8], [16, 32, 64]) for tick in range(LEAST_MARKS)]
    assert part_ms(marks, 3, OwnOps(frozenset({1}))) == pytest.approx((127, 34))
    assert part_ms(marks, 3, OwnOps(frozenset({1, 2}))) == pytest.approx((127, 110))


def test_the_programs_own_python_stays_unless_it_is_between_two_ops() -> None:
    marks = [marked(tick, [5, 7, 0], [1, 1], python=[4, 6]) for tick in range(LEAST_MARKS)]
    assert part_ms(marks, 2, OwnOps(frozenset({0, 1}))) == pytest.approx((14, 10))
    assert part_ms(marks, 2, OwnOps(frozenset({0, 1}), apart=True)) == pytest.approx((14, 4))


def test_a_loop_goes_with_its_calls() -> None:
    marks = [marked(tick, [0.3, 0], [1], python=[0.2]) for tick in range(LEAST_MARKS)]
    assert part_ms(marks, 1, OwnOps(frozenset({0}), apart=True)) == pytest.approx((1.3, 1.3))


def test_an_op_that_was_interrupted_counts_as_usual() -> None:
    calm = [marked(tick, [0, 0, 0], [1, 1]) for tick in range(1, 8)]
    interrupted = marked(0, [0, 0, 0], [1, 400])
    step_ms, part = part_ms([interrupted, *calm], 2, OwnOps(frozenset({1})))
    assert step_ms < 3
    assert part < 2


def test_of_an_op_that_waits_only_the_python_before_it_goes() -> None:
    marks = [marked(tick, [2, 1, 0], [4, 1]) for tick in range(LEAST_MARKS)]
    own = OwnOps(frozenset({1}), waits=frozenset({0}))
    assert part_ms(marks, 2, own) == pytest.approx((8, 4))


def test_steps_with_other_ops_and_too_few_steps_tell_nothing() -> None:
    marks = [marked(tick, [0, 0], [1]) for tick in range(LEAST_MARKS)]
    assert part_of(marks, 2, OwnOps(frozenset({0}))) is None
    assert part_of(marks[1:], 1, OwnOps(frozenset({0}))) is None
    assert part_of(marks, 1, OwnOps(frozenset())) is None


def test_marks_follow_a_recording_and_become_rare() -> None:
    marked_ticks = [tick for tick in range(42, 10_000) if is_marked_tick(tick, recorded_at=42)]
    assert marked_ticks[:12] == [*range(42, 50), 64, 65, 66, 67]
    assert len(marked_ticks) == 8 + 4 * 8


def test_a_recorded_step_comes_with_marked_ones_that_have_the_same_ops() -> None:
    weights = tf.Variable([1.0, 2.0])

    def train() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights * weights)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))

    def run_loop() -> None:
        for _ in range(30):
            train()

    step, notes = record_step(run_loop)
    assert notes == []
    assert step is not None
    alike = [mark for mark in step.marks if len(mark.ended) == step.count]
    assert LEAST_MARKS <= len(alike) <= MOST_MARKS
    assert all(mark.start <= mark.began[0] <= mark.ended[0] <= mark.end for mark in alike)
    own = OwnOps(frozenset(op.place for op in step.ops() if op.place >= 0))
    part = part_of(list(step.marks), step.count, own)
    assert part is not None
    assert all(0 < own_s <= step_s for own_s, step_s in zip(part.part_s, part.step_s, strict=True))


def test_a_step_in_which_something_was_traced_is_not_marked() -> None:
    totals = [0] * len(ACCOUNT_NAMES)
    for traced_ns, counts in ((0, True), (5 * MS, False)):
        marking = Marking(1, totals)
        marking.begin()
        tf.constant(1.0) + 1.0
        totals[TRACE] += traced_ns
        assert (marking.end() is not None) == counts


def test_an_interruption_around_a_call_of_fit_is_not_taken_for_what_stays() -> None:
    """Most marked steps lost their processor right there: their median was an interruption."""
    busy = [
        marked(tick, [40, 1, 0, 0, 40], [2, 1, 1, 1])._replace(edges_cpu={0: MS // 4, 4: MS // 2})
        for tick in range(LEAST_MARKS)
    ]
    own = OwnOps(frozenset({1, 2}), waits=frozenset({0}), in_fit=True)
    assert part_ms(busy, 4, own) == pytest.approx((6.75, 3))


def test_processor_time_around_the_ops_is_counted() -> None:
    def run_loop() -> None:
        for number in range(24):
            with tf.GradientTape() as tape:
                loss = weight * float(number)
            weight.assign_sub(0.1 * tape.gradient(loss, weight))

    weight = tf.Variable(1.0)
    step, _ = record_step(run_loop)
    assert step is not None
    *_, last = step.marks
    assert set(last.edges_cpu) == {0, len(last.ended)}
    assert all(ns > 0 for ns in last.edges_cpu.values())
