"""Comparing runs: what is called a difference, and what is not."""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
from typing import Any

import pytest

from stoker.doctor.diagnosis.comparison import FAILED, FASTER, SLOWER, UNDECIDED, changes, compare
from stoker.doctor.diagnosis.noise import mean_error, measure_between_runs, runs_needed, t_quantile
from stoker.records import Record
from tests.samples import sample_finding, sample_record


def correlated(
    chance: random.Random, count: int, mean: float, noise: float, memory: float = 0.9
) -> list[float]:
    """Step times that hang together: each is `memory` of the one before and a little of its own."""
    own = noise * math.sqrt(1 - memory**2)
    at, steps = 0.0, []
    for _ in range(count):
        at = memory * at + chance.gauss(0, own)
        steps.append(mean * (1 + at))
    return steps


def a_run(
    step_s: float, chance: random.Random, between: float = 0.0, inside: float = 0.1, **changed: Any
) -> Record:
    steps = correlated(chance, 128, step_s * math.exp(chance.gauss(0, between)), inside)
    values = {"steps_per_s": 1 / statistics.fmean(steps), "step_times": steps, "examples_per_s": None}
    return sample_record(id=f"run-{chance.random()}", **{**values, **changed})


def test_the_error_of_a_mean_counts_that_steps_hang_together() -> None:
    chance = random.Random(1)
    runs = [correlated(chance, 512, 1.0, 0.1) for _ in range(100)]
    true = statistics.stdev(statistics.fmean(run) for run in runs)
    said = statistics.median(error for error in map(mean_error, runs) if error is not None)
    naive = 0.1 / math.sqrt(512)
    assert true > 3 * naive
    assert 0.7 * true < said < 1.5 * true


def test_the_error_of_too_few_steps_is_unknown() -> None:
    assert mean_error([0.1] * 5) is None
    assert mean_error([]) is None
    assert mean_error([0.0] * 100) is None
    assert mean_error([0.1] * 100) == pytest.approx(0, abs=1e-9)


def test_quantiles_are_students() -> None:
    for freedom, value in ((4, 2.776), (6, 2.447), (10, 2.228), (30, 2.042), (1000, 1.962)):
        assert t_quantile(freedom) == pytest.approx(value, rel=0.005)


def test_two_runs_that_agree_by_chance_do_not_make_a_machine_without_noise() -> None:
    spread, freedom = measure_between_runs([[1.0, 1.0], [1.2, 1.2]], 0.03)
    assert spread > 0.02
    assert freedom == 6


def test_two_percent_is_no_improvement_on_a_noisy_machine() -> None:
    chance = random.Random(7)
    results = [compare([a_run(0.0400, chance, 0.03)], [a_run(0.0392, chance, 0.03)]) for _ in range(40)]
    assert sum(result.verdict == FASTER for result in results) <= 1
    for result in results:
        assert result.low < result.change < result.high
        assert result.verdict != UNDECIDED or (result.runs_needed or 10_000) > 1


@pytest.mark.parametrize("runs", [1, 3])
def test_sides_that_are_the_same_are_rarely_told_apart(runs: int) -> None:
    chance = random.Random(runs)
    wrong = 0
    for _ in range(120):
        sides = [[a_run(0.04, chance, 0.04, inside=0.05) for _ in range(runs)] for _ in "ab"]
        wrong += compare(sides[0], sides[1]).verdict != UNDECIDED
    # It says 95 %; the machine here is noisier than what is assumed.
    assert wrong <= 120 * 0.08


def test_a_true_difference_is_seen_and_measured() -> None:
    chance = random.Random(3)
    result = compare([a_run(0.040, chance, 0.01)], [a_run(0.030, chance, 0.01)])
    assert result.verdict == FASTER
    assert result.low < 1 / 3 < result.high
    back = compare([a_run(0.030, chance, 0.01)], [a_run(0.040, chance, 0.01)])
    assert back.verdict == SLOWER
    assert back.is_slower_than(0.05)
    assert not back.is_slower_than(0.25)
    assert not result.is_slower_than(0.05)


def test_a_machine_busy_with_other_work_proves_little() -> None:
    chance = random.Random(3)
    calm = [a_run(0.040, chance, 0.01), a_run(0.030, chance, 0.01)]
    busy = [dataclasses.replace(run, environment={"busy with other work": 0.8}) for run in calm]
    assert compare(calm[:1], calm[1:]).verdict == FASTER
    result = compare(busy[:1], busy[1:])
    assert result.verdict == UNDECIDED
    assert "80% busy with other work" in result.notes[0]


def test_more_runs_see_smaller_differences() -> None:
    chance = random.Random(5)
    few = compare([a_run(0.040, chance, 0.01)], [a_run(0.0375, chance, 0.01)])
    many = compare(
        [a_run(0.040, chance, 0.01) for _ in range(8)], [a_run(0.0375, chance, 0.01) for _ in range(8)]
    )
    assert (few.verdict, many.verdict) == (UNDECIDED, FASTER)
    assert many.high - many.low < (few.high - few.low) / 2


def test_how_many_runs_it_takes() -> None:
    assert runs_needed(0.03, 0.5) == 1
    assert 10 < (runs_needed(0.03, 0.02) or 0) < 40
    assert runs_needed(0.5, 0.001) is None


def test_a_larger_batch_is_judged_by_examples() -> None:
    chance = random.Random(2)
    small = a_run(0.010, chance, examples_per_s=3200.0, steps_per_s=100.0)
    large = a_run(0.025, chance, examples_per_s=5120.0, steps_per_s=40.0)
    result = compare([small], [large])
    assert (result.measure, result.verdict) == ("examples a second", FASTER)
    assert result.change == pytest.approx(0.6)
    assert "batches differ (32 to 128 examples)" in result.notes[0]


def test_runs_without_steps_are_judged_by_their_length() -> None:
    result = compare([sample_record(steps_per_s=None)], [sample_record(steps_per_s=None, wall_s=1.23)])
    assert result.verdict == FASTER
    assert result.change == pytest.approx(9)
    with pytest.raises(ValueError, match="no recorded time"):
        compare([sample_record(wall_s=0.0)], [sample_record()])


def test_what_makes_a_comparison_doubtful_is_said() -> None:
    other = sample_record(versions={"tensorflow": "2.17.0"}, exit_code=130, id="later")
    notes = " ".join(compare([sample_record()], [other]).notes)
    assert "TensorFlow differs: 2.21.0 and 2.17.0" in notes
    assert "did not end normally: later" in notes
    assert "kept no step times" in notes


def test_a_run_that_failed_is_no_verdict_on_its_speed() -> None:
    result = compare([sample_record()], [sample_record(exit_code=3, id="later", steps_per_s=99.0)])
    assert result.verdict == FAILED
    assert result.failed == ((), ("later (exit code 3)",))


def test_findings_gone_new_and_stayed_although_lines_moved() -> None:
    read = sample_finding()
    feed = sample_finding(kind="numpy-feed-in-loop", source="step(x)")
    eager = sample_finding(kind="eager-train-step", source="with tape:")
    moved = sample_finding(line=99, file="other.py", lost_s=1.0)
    found = changes([sample_record(findings=[read, feed])], [sample_record(findings=[moved, eager])])
    assert [f.kind for f in found.gone] == ["numpy-feed-in-loop"]
    assert [f.kind for f in found.new] == ["eager-train-step"]
    assert [(old.line, new.line) for old, new in found.stayed] == [(42, 99)]
