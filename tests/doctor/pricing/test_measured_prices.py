"""Prices that rest on a timed repair: what is replaced, and what of a step stays as it was measured."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from stoker.doctor.pricing import prices
from stoker.doctor.replay.pieces import TIMED, Piece
from stoker.doctor.replay.program import Program, Source, TimedRepair
from stoker.doctor.replay.simulation import Draw, seconds_per_step, slowdowns
from stoker.records import Finding
from tests.samples import sample_finding

LINE = ("train.py", 42)


def program(steps: list[list[Piece]], **changes: Any) -> Program:
    seconds = sum(piece.seconds for step in steps for piece in step) / len(steps)
    blank = Program(steps=steps, step_s=seconds, asynchronous=False, cores=2, kernel_threads=1)
    return dataclasses.replace(blank, **{"count": len(steps), **changes})


def finding(kind: str, seconds: float, count: int = 40, **changes: Any) -> Finding:
    return sample_finding(
        kind=kind, what_if=None, line=42, count=count, seconds=seconds, lost_s=seconds, **changes
    )


def timed(found: Finding, *rounds: float) -> dict[tuple[str, str, int], TimedRepair]:
    return {(found.kind, found.file, found.line): TimedRepair(rounds)}


def test_a_call_of_the_one_graph_replaces_traces_their_calls_and_their_first_executions() -> None:
    name = "train_step"
    traced = [
        Piece("python", 0.002),
        Piece("dispatch", 0.001, LINE, name),
        Piece("trace", 0.090, LINE, name),
        Piece("dispatch", 0.001, LINE, name),
        Piece("launch", 0.004, LINE, name),
        Piece("compute", 0.002, LINE, name),
    ]
    found = Piece("python", 0.002), Piece("dispatch", 0.001, LINE, name), Piece("compute", 0.007, LINE, name)
    retraced = finding("retrace-python-arg", 20 * 0.090, detail={"function": name})
    run = program([traced, [*found]] * 20, timed=timed(retraced, 0.003))
    price = prices.what_if(run, [retraced])
    assert price.basis == "measured"
    # Every other step traced, and took 100 ms; the others 10. Repaired, each is a call and the loop's own Python.
    assert price.speedup == pytest.approx(0.055 / (0.003 + 0.002), rel=1e-3)


def test_the_world_of_an_agent_stays_in_the_step_when_predict_goes() -> None:
    """Its Python was counted as predict's: 141x was promised, 55x measured."""
    step = [
        Piece("eager", 0.050, LINE, "predict"),
        Piece("teardown", 0.008, LINE, "predict"),
        Piece("compute", 0.001, LINE, "one_step"),
        Piece("python", 0.001),
    ]
    # The sums hold the first call, which traced.
    predicts = finding("predict-in-loop", 40 * 0.059 + 1.0, detail={"rows_per_call": 1.0})
    run = program([step] * 40, timed=timed(predicts, 0.0004))
    price = prices.what_if(run, [predicts])
    assert price.basis == "measured"
    assert price.speedup == pytest.approx(0.060 / (0.001 + 0.0004), rel=1e-3)


def test_where_all_rows_are_there_one_predict_has_to_get_ready() -> None:
    step = [Piece("eager", 0.049, LINE, "predict"), Piece("compute", 0.001, LINE, "one_step")]
    detail = {"rows_per_call": 1.0, "rows_are_there": True}
    predicts = finding("predict-in-loop", 40 * 0.050, detail=detail)
    run = program([step] * 40, timed=timed(predicts, 0.0001))
    assert prices.what_if(run, [predicts]).speedup == pytest.approx(0.050 / (0.049 / 40 + 0.0001), rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "account"),
    [("sync-in-loop", "sync"), ("checkpoint-in-loop", "checkpoint"), ("host-callback-per-batch", "python")],
)
def test_what_the_run_has_timed_is_left_out_forty_nine_times_of_fifty(kind: str, account: str) -> None:
    step = [Piece(account, 0.030, LINE, "hook"), Piece("compute", 0.010, ("train.py", 50))]
    run, found = program([step] * 40), finding(kind, 40 * 0.030)
    price = prices.what_if(run, [found])
    assert price.basis == "measured"
    assert price.speedup == pytest.approx(0.040 / (0.010 + 0.030 / 50), rel=1e-3)
    # Only the replay tells what a device beside the host makes of it.
    beside_host = dataclasses.replace(run, asynchronous=True)
    assert prices.what_if(beside_host, [found]).basis == "modelled"


# An input made ahead by a thread that keeps one of two processors busy.
BUSY = Source(0.020, ahead=2, threads=1.0, duty=1.0)


def test_what_was_timed_alone_is_slower_beside_an_input_and_as_timed_without_one() -> None:
    alone = [Piece("compute", 0.010, LINE, TIMED)]
    beside = program([alone] * 8, kernel_threads=2, source=BUSY, measured=BUSY)
    kernels, _ = slowdowns(beside, BUSY, 1.0, Draw())
    assert kernels > 1.2
    there = dataclasses.replace(beside, source=dataclasses.replace(BUSY, seconds=0.0))
    assert seconds_per_step(there, Draw()) == pytest.approx(0.010)
    in_run = dataclasses.replace(beside, steps=[[Piece("compute", 0.010, LINE)]] * 8)
    in_run = dataclasses.replace(in_run, source=there.source)
    # A piece of the run was measured beside the input: without it, it is quicker.
    assert seconds_per_step(in_run, Draw()) == pytest.approx(0.010 / kernels)


def test_no_repair_of_an_input_exceeds_the_step_whose_batch_is_there() -> None:
    step = [Piece("input", 0.030, LINE), Piece("compute", 0.010, ("train.py", 50)), Piece("python", 0.002)]
    source = Source(0.030)
    run = program([step] * 40, source=source, measured=source)
    starved = finding("input-starved", 40 * 0.030)
    timed_calls = dataclasses.replace(run, timed=timed(starved, 0.005, 0.006))
    modelled, bounded = prices.what_if(run, [starved]), prices.what_if(timed_calls, [starved])
    assert modelled.high <= 0.042 / (0.010 + 0.002) + 0.001
    # The calls took half as long while no input was made: that is the bound, and the price stays a model's.
    assert bounded.high == pytest.approx(0.042 / (0.005 + 0.002), rel=0.01)
    assert bounded.speedup == modelled.speedup
    assert bounded.basis == "modelled"


def test_taking_down_a_python_input_goes_with_it() -> None:
    step = [Piece("input", 0.030, LINE), Piece("teardown", 0.010), Piece("compute", 0.010, ("train.py", 50))]
    source = Source(0.030, python=True)
    run = program([step] * 40, source=source, measured=source)
    assert prices.what_if(run, [finding("python-input-pipeline", 40 * 0.030)]).speedup > 0.050 / 0.015
    assert prices.what_if(run, [finding("input-starved", 40 * 0.030)]).speedup < 0.050 / 0.015
