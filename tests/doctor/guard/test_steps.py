"""Which beginnings mark the steps."""

from __future__ import annotations

from stoker.doctor.guard.steps import CALLS, INFERENCE, TAPES, TRAINING, StepCounter


def test_training_goes_before_what_was_seen_first() -> None:
    counter = StepCounter()
    assert counter.begin(CALLS, "prepare")
    assert counter.begin(TRAINING, "step")
    assert not counter.begin(CALLS, "prepare")
    assert counter.steps == 1
    assert counter.begin(TRAINING, "step")
    assert counter.steps == 2


def test_of_two_even_sources_the_first_marks() -> None:
    counter = StepCounter()
    marks = [counter.begin(TRAINING, source) for source in ("generator", "discriminator") * 3]
    assert marks == [True, False] * 3
    assert counter.steps == 3


def test_a_source_called_more_often_takes_over() -> None:
    counter = StepCounter()
    counter.begin(CALLS, "prepare")
    for _ in range(3):
        counter.begin(CALLS, "infer")
    assert counter.steps == 3


def test_a_function_is_regraded_after_its_first_trace() -> None:
    counter = StepCounter()
    counter.begin(TAPES, "tape")
    counter.begin(CALLS, "step")
    counter.regrade(TRAINING, "step")
    assert counter.steps == 1
    assert not counter.begin(TAPES, "tape")


def test_several_steps_in_one_execution() -> None:
    counter = StepCounter()
    for _ in range(2):
        counter.begin(TRAINING, "train")
        counter.more("train", 3)
        counter.begin(INFERENCE, "test")
    assert counter.steps == 8
