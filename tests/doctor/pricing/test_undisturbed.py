"""A run's steps without other programs on the processors, and without iterators taken down between epochs."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from stoker.doctor.pricing import undisturbed
from stoker.doctor.replay.pieces import Piece
from stoker.records import SteppingRow
from tests.samples import sample_finding


def phase(**changes: Any) -> SteppingRow:
    blank = SteppingRow(seconds=10.0, steps=100, accounts={"python": 6.0, "graph": 3.0, "teardown": 1.0})
    return dataclasses.replace(blank, **changes)


def test_what_others_had_of_one_processor_is_left_out() -> None:
    assert undisturbed.part_left(phase(cpu_s=2.5, waited_s=6.0, all_waited_s=7.5)) == pytest.approx(0.25)


def test_sleeping_stays() -> None:
    # 2 s at work, 3 s without a processor, 5 s asleep.
    assert undisturbed.part_left(phase(cpu_s=2.0, all_waited_s=3.0)) == pytest.approx(0.7)


def test_threads_that_wait_at_the_same_time_lose_the_time_once() -> None:
    assert undisturbed.part_left(phase(cores=2, cpu_s=10.0, all_waited_s=10.0)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "changes",
    [{}, {"cpu_s": 9.9, "all_waited_s": 0.1}, {"cpu_s": 2.5, "all_waited_s": 7.5, "asynchronous": True}],
)
def test_an_idle_machine_a_gpu_and_old_records_are_left_as_they_are(changes: dict[str, Any]) -> None:
    assert undisturbed.part_left(phase(**changes)) == 1.0


def test_iterators_taken_down_between_epochs_are_no_part_of_a_step() -> None:
    left = undisturbed.without_teardowns(phase(), [sample_finding(kind="sync-in-loop")])
    assert left.seconds == 9.0
    steps = [[Piece("python", 0.06), Piece("teardown", 0.01)]]
    assert undisturbed.without_account(steps, left) == [[Piece("python", 0.06)]]


@pytest.mark.parametrize("kind", ["iterator-teardown", "predict-in-loop"])
def test_they_are_where_a_finding_is_about_them(kind: str) -> None:
    assert undisturbed.without_teardowns(phase(), [sample_finding(kind=kind)]) == phase()
