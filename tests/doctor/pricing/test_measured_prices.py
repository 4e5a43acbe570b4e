"""Prices that rest on a timed repair: what is replaced, and what of a step stays as it was measured."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from stoker.doctor.pricing import prices
from stoker.doctor.replay.pieces import Piece
from stoker.doctor.replay.program import Program, TimedRepair
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
