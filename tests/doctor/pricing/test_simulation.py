"""The replay, on steps whose answer is known by arithmetic."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

import pytest

from stoker.doctor.pricing import prices
from stoker.doctor.pricing import program as programs
from stoker.doctor.pricing.claims import repair_of
from stoker.doctor.pricing.repairs import UNDISTURBED, apply_repairs
from stoker.doctor.replay.pieces import Piece, join_alike
from stoker.doctor.replay.program import Program, Source, is_element
from stoker.doctor.replay.simulation import Draw, replay, seconds_per_step
from stoker.doctor.stall import stalls
from stoker.records import Finding, Record
from tests.samples import sample_finding, sample_record

LINE = ("train.py", 42)


def program(step: list[Piece], count: int = 40, **changes: Any) -> Program:
    blank = Program(steps=[step] * count, step_s=0.04, asynchronous=False, cores=2, kernel_threads=1)
    return dataclasses.replace(blank, **changes)


def with_source(step: list[Piece], source: Source, **changes: Any) -> Program:
    return program(step, source=source, measured=source, **changes)


def finding(kind: str, **changes: Any) -> Finding:
    return sample_finding(kind=kind, what_if=None, **changes)


# What stays is as slow as it was beside the stall: the arithmetic alone.
AS_COLD = Draw({UNDISTURBED: 0.0})


def gain(run: Program, *findings: Finding) -> float:
    return prices.speedup(run, findings, AS_COLD)


def warmed(kind: str, share: float) -> float:
    """How many times as quick what stays is, without a stall of this share of a step."""
    return 1 / (1 - share * statistics.fmean(repair_of(kind).beside))


def test_what_stays_is_quicker_the_more_of_a_step_the_stall_took() -> None:
    most = repair_of("predict-in-loop").beside[1]
    for stall in (0.001, 0.010, 0.030):
        step = [Piece("dispatch", stall, LINE), Piece("compute", 0.010, ("train.py", 50))]
        run, rows = program(step, step_s=0.010 + stall), finding("predict-in-loop", count=40)
        share = stall / (0.010 + stall)
        price = prices.what_if(run, [rows])
        assert price.frees is not None
        assert list(price.frees) == [UNDISTURBED]
        assert price.frees[UNDISTURBED] == pytest.approx((1 - share) * share * most, abs=1e-4)
        assert price.speedup > gain(run, rows)
        assert price.high <= 1 / (1 - share - sum(price.frees.values())) + 0.001
        assert not prices.what_if(program([Piece("sync", stall, LINE)]), [finding("sync-in-loop")]).frees


def test_where_nothing_of_a_step_is_left_its_share_is_the_price() -> None:
    """No window of the profiler said what of a call is kernels: its price was 1."""
    step = [Piece("graph", 0.001, LINE)]
    calls = finding("launch-bound", detail={"calls": 40}, seconds=0.04, lost_s=0.04)
    price = prices.what_if(dataclasses.replace(program(step, step_s=0.001), count=50), [calls])
    assert price.speedup == pytest.approx(1 / (1 - 0.8), rel=0.01)


# 10 ms of host, then a read that waits 30 ms for the device the host has given 30 ms of work.
READING = [
    Piece("python", 0.009),
    Piece("graph", 0.001, device=0.031),
    Piece("sync", 0.030, LINE, wait=0.030),
]


def test_a_read_makes_host_and_device_take_turns() -> None:
    assert seconds_per_step(program(READING, asynchronous=True), Draw()) == pytest.approx(0.040)


def test_without_the_read_the_longer_of_the_two_remains() -> None:
    run = program(READING, asynchronous=True)
    assert gain(run, finding("sync-in-loop")) == pytest.approx(0.040 / 0.031, rel=1e-3)


def test_a_wait_for_useful_work_is_no_loss_when_the_host_has_nothing_to_do() -> None:
    step = [Piece("graph", 0.0001, device=0.030), Piece("sync", 0.0299, LINE, wait=0.0299)]
    assert gain(program(step, asynchronous=True), finding("sync-in-loop")) == pytest.approx(1.0, abs=0.01)


def test_another_lines_read_stays() -> None:
    run = program(READING, asynchronous=True)
    assert gain(run, finding("sync-in-loop", line=43)) == pytest.approx(1.0)


def test_two_reads_of_which_one_is_repaired() -> None:
    """The other one still waits: the repair gains the copy alone."""
    step = [*READING[:2], Piece("sync", 0.031, LINE, wait=0.029), Piece("sync", 0.001, ("train.py", 50))]
    run = program(step, asynchronous=True)
    both = [finding("sync-in-loop"), finding("sync-in-loop", line=50)]
    assert gain(run, both[0]) == pytest.approx(0.043 / 0.041, rel=1e-2)
    assert gain(run, *both) == pytest.approx(0.043 / 0.031, rel=1e-2)


@pytest.mark.parametrize(
    ("kind", "account"),
    [("checkpoint-in-loop", "checkpoint"), ("sync-in-loop", "sync"), ("host-callback-per-batch", "python")],
)
def test_what_is_done_every_fifty_steps_costs_a_fiftieth(kind: str, account: str) -> None:
    run = program([Piece("compute", 0.010), Piece(account, 0.030, LINE, "Logger.on_train_batch_end")])
    assert gain(run, finding(kind)) == pytest.approx(0.040 / (0.010 + 0.030 / 50))


def test_tracing_goes_with_the_slow_call_around_it() -> None:
    usual = [Piece("dispatch", 0.001, LINE, "step"), Piece("compute", 0.010, LINE, "step")]
    tracing = [
        Piece("trace", 0.100, ("train.py", 3), "step"),
        Piece("dispatch", 0.005, LINE, "step"),
        usual[1],
    ]
    run = program(usual, steps=[usual, usual, tracing] * 20)
    assert gain(run, finding("retrace-shape", detail={"function": "step"})) == pytest.approx(
        (2 * 0.011 + 0.115) / 3 / 0.011, rel=0.03
    )


def test_eager_ops_become_their_kernels_and_one_call() -> None:
    """Of 40 ms, a quarter are kernels; half of that is starting them, half as dear in a graph; one by one."""
    run = program([Piece("eager", 0.040)], cores=1, eager_kernels=0.25, eager_floor=0.125, call_s=0.001)
    assert gain(run, finding("eager-train-step")) == pytest.approx(0.040 / 0.0085)


def test_calls_that_cost_more_than_they_run() -> None:
    step = [
        Piece("python", 0.0005),
        Piece("dispatch", 0.002, LINE),
        Piece("launch", 0.001),
        Piece("compute", 0.0005),
    ]
    assert gain(program(step), finding("launch-bound", detail={"calls": 40})) == pytest.approx(0.004 / 0.0005)


def test_a_programs_own_work_between_the_calls_stays() -> None:
    step = [Piece("python", 0.010), Piece("dispatch", 0.001, LINE), Piece("compute", 0.001)]
    assert gain(program(step), finding("launch-bound", detail={"calls": 40})) == pytest.approx(
        0.012 / 0.010, rel=1e-3
    )


def test_predict_for_all_rows_is_one_call() -> None:
    run = program([Piece("dispatch", 0.049), Piece("compute", 0.001)], count=64)
    rows = finding("predict-in-loop", count=64, detail={"rows_per_call": 1.0})
    assert gain(run, rows) == pytest.approx(0.050 / (0.049 / 64 + 0.001 / 32))


def test_converted_once() -> None:
    run = program([Piece("transfer", 0.030, LINE), Piece("compute", 0.010)], call_s=0.0)
    assert gain(run, finding("numpy-feed-in-loop")) == pytest.approx(4.0)


# The input is made on demand: 30 ms, then 10 ms of kernels.
ON_DEMAND = [Piece("input", 0.030, LINE), Piece("compute", 0.010)]


def test_prefetching_leaves_the_slower_of_input_and_step() -> None:
    run = with_source(ON_DEMAND, Source(0.030))
    assert gain(run, finding("missing-prefetch")) == pytest.approx(0.040 / 0.030, rel=1e-3)


def test_a_parallel_map_is_bound_by_the_processors() -> None:
    """40 ms of processor time on two processors cannot take less than 20 ms."""
    run = with_source(ON_DEMAND, Source(0.030))
    assert 1.5 < gain(run, finding("map-without-parallel-calls")) <= 2.001


def test_a_map_of_batches_is_called_once() -> None:
    """Of 30 ms, nine tenths are a map that is called 1000 times for a batch."""
    source = Source(0.040, ahead=8, duty=1.0, slow_share=0.9, slow_calls=1000)
    run = with_source(ON_DEMAND, source, cores=8)
    assert seconds_per_step(run, Draw()) == pytest.approx(0.040)
    assert gain(run, finding("map-before-batch")) == pytest.approx(4.0, rel=1e-2)


def test_kernels_get_the_processors_back_when_the_input_no_longer_wants_them() -> None:
    """Two threads of kernels beside two of input on two processors: alone they take half the time."""
    source = Source(0.040, ahead=8, threads=2, duty=1.0)
    run = with_source(ON_DEMAND, source, kernel_threads=2)
    assert gain(run, finding("input-starved")) == pytest.approx(0.040 / 0.005, rel=0.3)


def test_a_faster_step_waits_for_an_input_that_was_just_fast_enough() -> None:
    """Repairing the step alone gains little: the input was nearly as slow."""
    step = [Piece("input", 0.0), Piece("checkpoint", 0.030, LINE), Piece("compute", 0.010)]
    source = Source(0.035, ahead=8, duty=0.9)
    run = with_source(step, source)
    assert gain(run, finding("checkpoint-in-loop")) == pytest.approx(0.040 / 0.035, rel=1e-2)


def test_every_measured_kind_has_a_remedy_and_says_what_it_assumes() -> None:
    from tests.doctor.diagnosis.measured_kinds import MEASURED, UNPRICED

    repairs = {slug: stall.repair for slug, stall in stalls().items() if stall.repair is not None}
    assert set(repairs) == MEASURED - UNPRICED
    assert all(repair.assumes for repair in repairs.values())


def test_the_order_is_by_what_each_then_gains() -> None:
    """Alone, neither input nor step gains: the slower hides the other. The first repair is the one that does."""
    step = [
        Piece("transfer", 0.020, LINE),
        Piece("checkpoint", 0.015, ("train.py", 50)),
        Piece("compute", 0.005),
    ]
    both = [finding("checkpoint-in-loop", line=50), finding("numpy-feed-in-loop")]
    rows = prices.order(program(step), both)
    assert [row.kind for row in rows] == ["numpy-feed-in-loop", "checkpoint-in-loop"]
    # The checkpoint takes as long as before; only what the host itself does is quicker.
    left = 0.015 + 0.005 / warmed("numpy-feed-in-loop", 0.5)
    assert rows[0].alone == rows[0].together == pytest.approx(0.040 / left, rel=1e-2)
    assert rows[1].alone > 0.040 / 0.0253
    assert rows[1].together > 0.040 / 0.0053


def test_bounds_come_from_the_spread_of_the_steps() -> None:
    def price_record(waits: list[float]) -> float:
        steps = [[Piece("compute", 0.010), Piece("checkpoint", wait, LINE)] for wait in waits]
        price = prices.what_if(program(steps[0], steps=steps), [finding("checkpoint-in-loop")])
        assert price.low <= price.speedup <= price.high
        return price.high - price.low

    # Steps that are all alike leave what the model itself is off by.
    assert (
        0
        < price_record([0.020] * 48)
        <= price_record([0.010, 0.030] * 24)
        < price_record([0.001] * 24 + [0.039] * 24)
    )


def test_the_device_is_the_limit_when_the_host_runs_ahead() -> None:
    step = [Piece("graph", 0.001, device=0.020)]
    assert replay([step] * 50, None, True) == pytest.approx(0.020)


def recorded(host: list[list[Any]], marks: list[list[float]], **phase: Any) -> Record:
    """A record whose one window holds these spans."""
    lanes = [{"name": "host", "spans": host}]
    window = {"start_s": marks[0][0], "end_s": marks[-1][1], "steps": marks, "lanes": lanes}
    sites = [{"file": "train.py", "line": 42, "function": "train"}]
    known = {
        "seconds": 0.0,
        "steps": 0,
        "accounts": {},
        "cores": 2,
        "kernel_threads": 1,
        "asynchronous": False,
    }
    known |= {"eager_ops": 0, "eager_s": 0.0, "eager_op_s": 0.0, "gradient_bytes": 0, **phase}
    timeline = {"sites": sites, "windows": [window]}
    return sample_record(findings=[], timeline=timeline, tables={"stepping": [known]})


def test_windows_are_stretched_to_the_sums_of_the_whole_run() -> None:
    """The window saw 10 ms steps without a checkpoint; the run had 10 ms of checkpoints a step, and slower Python."""
    marks = [[n * 0.010, (n + 1) * 0.010] for n in range(8)]
    host = [[start, end, "python", -1, "", 0.0] for start, end in marks]
    record = recorded(host, marks, seconds=3.0, steps=100, accounts={"python": 2.0, "checkpoint": 1.0})
    run = programs.of(record)
    assert run is not None
    assert seconds_per_step(run, Draw()) == pytest.approx(0.030)
    assert gain(run, finding("checkpoint-in-loop")) == pytest.approx(0.030 / 0.0202)


def test_a_record_is_priced_and_ordered() -> None:
    marks = [[n * 0.040, (n + 1) * 0.040] for n in range(8)]
    host: list[list[Any]] = []
    for start, end in marks:
        host.append([start, start + 0.010, "python", -1, "", 0.0])
        host.append([start + 0.010, end, "checkpoint", 0, "save", 0.0])
    record = recorded(host, marks, seconds=4.0, steps=100, accounts={"python": 1.0, "checkpoint": 3.0})
    record = dataclasses.replace(record, findings=[finding("checkpoint-in-loop")])
    done = prices.price_record(record)
    assert done.findings[0].what_if is not None
    # The run has timed every save, so nothing is assumed of the rest.
    assert done.findings[0].what_if.basis == "measured"
    left = 0.010 + 0.030 / 50
    assert done.findings[0].what_if.speedup == pytest.approx(0.040 / left, rel=1e-3)
    assert done.what_if is not None
    assert done.what_if.order[0].line == 42
    assert prices.BASIS in done.what_if.assumptions


def test_a_record_without_spans_is_left_alone() -> None:
    record = sample_record()
    assert programs.of(record) is None
    assert prices.price_record(record) is record


def test_repairing_nothing_changes_nothing() -> None:
    run = program(READING, asynchronous=True)
    assert apply_repairs(run, [], Draw()) is run


def test_a_python_input_gains_when_the_host_lets_go_of_pythons_lock() -> None:
    # The generator needs 30 ms beside a host that holds the lock for 20 of them.
    step = [Piece("input", 0.010), Piece("eager", 0.020, LINE)]
    generator = Source(seconds=0.030, ahead=8, python=True, duty=1.0)
    run = with_source(step, generator, step_s=0.030, python_s=0.020)
    lock = Draw().between(1.5, 5.0, "lock")
    alone = 0.030 / (1 + (lock - 1) * 20 / 30)
    assert gain(run, finding("eager-train-step")) == pytest.approx(0.030 / alone, rel=0.01)


def test_a_python_input_stays_as_it_was_beside_an_unchanged_host() -> None:
    step = [Piece("input", 0.010), Piece("eager", 0.020, LINE)]
    generator = Source(seconds=0.030, ahead=8, python=True, duty=1.0)
    run = with_source(step, generator, step_s=0.030, python_s=0.020)
    assert seconds_per_step(run, Draw()) == pytest.approx(0.030, rel=0.01)


def test_python_is_quicker_without_an_input_that_holds_its_lock() -> None:
    """Processor time that was but waiting for the lock does not stay when the input no longer holds it."""
    step = [Piece("input", 0.040, LINE), Piece("dispatch", 0.005, ("train.py", 50))]
    generator = Source(seconds=0.045, ahead=8, python=True, duty=1.0)
    run = with_source(step, generator, step_s=0.045, python_s=0.005, cores=1)
    lock = Draw().between(1.5, 5.0, "lock")
    left = 0.045 * Draw().between(0.01, 0.1, "left")
    assert gain(run, finding("python-input-pipeline")) > 0.045 / (0.005 / lock + left) * 0.8


def test_alike_pieces_are_joined_between_elements_only() -> None:
    element = Piece("input", 0.5, ("train.py", 3))
    step = [Piece("python", 1.0), Piece("eager", 2.0), Piece("python", 0.25), element, Piece("python", 4.0)]
    joined = join_alike(step, is_element, frozenset())
    assert joined == [Piece("python", 1.25), Piece("eager", 2.0), element, Piece("python", 4.0)]
    assert join_alike(step, is_element, {"python"}) == step


def test_joining_alike_pieces_changes_no_replay() -> None:
    step = [
        Piece("python", 0.2),
        Piece("dispatch", 0.1, ("train.py", 5)),
        Piece("python", 0.3),
        Piece("input", 0.0, ("train.py", 3)),
        Piece("dispatch", 0.4, ("train.py", 5)),
        Piece("dispatch", 0.1, ("train.py", 5)),
    ]
    joined = join_alike(step, is_element, frozenset())
    assert len(joined) == 4
    for ahead in (0, 2):
        source = Source(0.9, ahead=ahead)
        assert replay([joined] * 4, source, False) == pytest.approx(replay([step] * 4, source, False))
