"""Prices of which nothing is assumed: a step, less what repairs replace, plus what was timed in its place."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.doctor.pricing.measured import MeasuredGain, measured_gain
from stoker.doctor.pricing.prices import basis_of
from stoker.doctor.replay.pieces import Piece
from stoker.doctor.replay.program import Program, Source, TimedRepair
from stoker.records import Finding
from tests.samples import sample_finding


def finding(kind: str, line: int, seconds: float = 1.0, **detail: Any) -> Finding:
    return sample_finding(
        kind=kind, what_if=None, line=line, count=100, seconds=seconds, lost_s=seconds, detail=detail
    )


def gain_of(found: list[Finding], repairs: list[TimedRepair], **changes: Any) -> MeasuredGain | None:
    return measured_gain(program_of(found, repairs, **changes), found)


def program_of(found: list[Finding], repairs: list[TimedRepair], **changes: Any) -> Program:
    timed = {(f.kind, f.file, f.line): repair for f, repair in zip(found, repairs, strict=False)}
    fields: dict[str, Any] = {"asynchronous": False, "cores": 1, "kernel_threads": 1, "count": 100}
    fields["steps"] = [[Piece("eager", 0.010)]] * 4
    return Program(step_s=0.010, timed=timed, **{**fields, **changes})


STEADY = TimedRepair(rounds=(0.001,) * 9, replaces=(0.009,) * 16)


def test_the_repaired_part_takes_the_place_of_what_it_replaces() -> None:
    gain = gain_of([finding("eager-train-step", 5)], [STEADY])
    assert gain is not None
    assert gain.speedup == pytest.approx(0.010 / (0.001 + 0.001))
    assert gain.low < gain.speedup < gain.high
    assert gain.high / gain.low < 1.3


@pytest.mark.parametrize(
    ("source", "is_measured"),
    [
        (Source(0.0015, ahead=8), True),
        (Source(0.005, ahead=8), False),
        # Made when it is asked for: its time is in the step.
        (Source(0.005), True),
        # While it was measured, it waited for Python's lock, which the repaired step no longer holds.
        (Source(0.004, ahead=8, python=True), True),
        (Source(0.009, ahead=8, python=True), False),
    ],
)
def test_a_step_is_not_quicker_than_the_input_that_is_made_beside_it(
    source: Source, is_measured: bool
) -> None:
    element = Piece("input", 0.0001, ("train.py", 3))
    beside = {
        "steps": [[Piece("eager", 0.010), element]] * 4,
        "source": source,
        "measured": source,
        "python_s": 0.010,
    }
    found = [finding("eager-train-step", 5)]
    program = program_of(found, [STEADY], **beside)
    assert (measured_gain(program, found) is not None) == is_measured
    assert basis_of(program, found) == ("measured" if is_measured else "modelled")


def test_rounds_and_steps_that_differ_widen_the_bounds() -> None:
    steady = gain_of([finding("eager-train-step", 5)], [STEADY])
    rounds = tuple(0.0005 + 0.0001 * number for number in range(11))
    steps = tuple(0.0085 + 0.0001 * number for number in range(11))
    apart = gain_of([finding("eager-train-step", 5)], [TimedRepair(rounds=rounds, replaces=steps)])
    unsure = gain_of(
        [finding("eager-train-step", 5)], [TimedRepair(STEADY.rounds, 0.0, STEADY.replaces, 0.002)]
    )
    assert steady is not None
    assert apart is not None
    assert unsure is not None
    assert apart.speedup == pytest.approx(steady.speedup)
    assert apart.high / apart.low > steady.high / steady.low
    assert unsure.high / unsure.low > steady.high / steady.low


def test_ops_that_two_findings_hold_are_replaced_once() -> None:
    found = [finding("eager-train-step", 5), finding("launch-bound", 9)]
    inner = TimedRepair(rounds=(0.002,) * 9, replaces=(0.008,) * 16, within=("eager-train-step:5",))
    both, outer = gain_of(found, [STEADY, inner]), gain_of(found[:1], [STEADY])
    assert both == outer
    alone = gain_of(found[1:], [inner])
    assert alone is not None
    assert alone.speedup == pytest.approx(0.010 / (0.002 + 0.002))


def test_parts_apart_from_each_other_are_added_up() -> None:
    save = finding("checkpoint-in-loop", 9, seconds=0.1)
    found = [finding("eager-train-step", 5), save]
    steps = [[Piece("eager", 0.009), Piece("checkpoint", 0.001, (save.file, 9))]] * 4
    gain = gain_of(found, [TimedRepair(rounds=(0.001,) * 9, replaces=(0.007,) * 16)], steps=steps)
    assert gain is not None
    # A save of 1 ms a step is made every 50 steps.
    assert gain.speedup == pytest.approx(0.010 / (0.010 - 0.007 + 0.001 - 0.001 * 49 / 50))


def test_what_waited_for_a_processor_is_not_the_callbacks() -> None:
    busy = finding("host-callback-per-batch", 5, seconds=2.0, waited_share=0.75)
    gain = gain_of([busy], [], undisturbed=0.5)
    assert gain is not None
    assert gain.share == pytest.approx(0.005 / 0.010)


def test_nothing_is_told_where_something_would_have_to_be_assumed() -> None:
    assert gain_of([finding("input-starved", 5)], []) is None
    assert gain_of([finding("eager-train-step", 5)], [STEADY], asynchronous=True) is None
    assert gain_of([finding("retrace-shape", 5)], [TimedRepair(rounds=(0.001,) * 9)]) is None
