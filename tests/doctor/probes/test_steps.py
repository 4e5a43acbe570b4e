"""Counting steps from what the program does."""

from __future__ import annotations

from stoker.doctor.attach.sites import Sites
from stoker.doctor.probes.recorder import Recorder
from stoker.doctor.probes.steps import CALLS, INFERENCE, TRAINING, Steps

SECOND = 1_000_000_000


def new_steps() -> Steps:
    return Steps(Recorder(0, Sites()))


def test_training_counts_before_inference() -> None:
    steps = new_steps()
    for second in range(11):
        steps.tick(TRAINING, "fit", 1, 32, second * SECOND)
        steps.tick(INFERENCE, "evaluate", 5, 160, second * SECOND)
    assert steps.total() == 11
    assert steps.rates() == (1.0, 32.0)


def test_the_first_step_is_not_in_the_rate() -> None:
    steps = new_steps()
    steps.tick(TRAINING, "fit", 1, 8, 100 * SECOND)
    assert steps.rates() == (None, None)
    steps.tick(TRAINING, "fit", 10, 80, 105 * SECOND)
    assert steps.rates() == (2.0, 16.0)


def test_of_plain_calls_the_most_frequent_is_the_step() -> None:
    steps = new_steps()
    for second in range(5):
        steps.tick(CALLS, "forward", 1, 0, second * SECOND)
    steps.tick(CALLS, "prepare", 1, 0, 0)
    assert steps.total() == 5


def test_no_steps() -> None:
    assert new_steps().total() == 0
    assert new_steps().rates() == (None, None)


def test_a_tick_of_several_steps_takes_as_long_as_all_of_them() -> None:
    steps = new_steps()
    assert steps.tick_seconds() is None
    for second in range(4):
        steps.tick(TRAINING, "fit", 50, 0, second * SECOND)
    assert steps.rates() == (50.0, None)
    assert steps.tick_seconds() == 1.0
