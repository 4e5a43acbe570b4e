"""Scores, their intervals, and who wins."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from stoker.recipes.scores import Score, contest, verdict


def _probabilities(given: list[int], sure: float = 0.9) -> Any:
    answers: Any = np.full((len(given), 2), 1 - sure)
    answers[np.arange(len(given)), given] = sure
    return answers


def test_numbers_are_measured_as_by_hand() -> None:
    labels = np.array([1.0, 2.0, 3.0, 4.0])
    (found,) = contest(
        labels, {"network": labels + np.array([1.0, -1.0, 1.0, -1.0])}, classes=0, balanced=False
    )
    assert found.scores["RMSE"].value == 1.0
    assert found.scores["MAE"].value == 1.0
    assert found.scores["R2"].value == pytest.approx(1 - 1 / 1.25)


def test_the_area_counts_pairs_and_ties() -> None:
    labels = np.array([0, 0, 1, 1])
    scores = np.array([0.1, 0.4, 0.4, 0.8])
    (found,) = contest(labels, {"network": np.stack([1 - scores, scores], 1)}, classes=2, balanced=False)
    # Of four pairs three are in order and one is a tie.
    assert found.scores["AUC"].value == pytest.approx(3.5 / 4)


def test_balanced_accuracy_is_the_mean_of_the_recalls() -> None:
    labels = np.array([0] * 8 + [1] * 2)
    (found,) = contest(labels, {"network": _probabilities([0] * 10)}, classes=2, balanced=True)
    assert next(iter(found.scores)) == "balanced accuracy"
    assert found.scores["balanced accuracy"].value == 0.5
    assert found.scores["accuracy"].value == 0.8


def test_what_cannot_be_measured_is_unknown() -> None:
    labels: Any = np.full(3, 0.1, np.float32)
    (found,) = contest(labels, {"network": labels + 1}, classes=0, balanced=False)
    assert str(found.scores["R2"]) == "unknown"
    saved = {name: None if math.isnan(one) else one for name, one in asdict(found.scores["R2"]).items()}
    assert str(Score.of(saved)) == "unknown"
    # Three rows, of which a resample may have one three times.
    labels = np.array([0.1, 0.2, 0.7], np.float32)
    (found,) = contest(labels, {"network": labels + 0.1}, classes=0, balanced=False)
    assert found.scores["R2"].low > -1000


def test_an_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    held = 0
    for seed in range(100):
        right = random.random(200) < 0.8
        labels: Any = np.zeros(200, int)
        (found,) = contest(
            labels,
            {"network": _probabilities(np.where(right, 0, 1).tolist())},
            classes=2,
            balanced=False,
            seed=seed,
        )
        held += found.scores["accuracy"].low <= 0.8 <= found.scores["accuracy"].high
    assert 85 <= held <= 100


def test_a_baseline_that_is_clearly_better_wins() -> None:
    labels = np.array([0, 1] * 100)
    wrong = labels.copy()
    wrong[:60] = 1 - wrong[:60]
    found = contest(
        labels,
        {"network": _probabilities(wrong.tolist()), "linear": _probabilities(labels.tolist())},
        classes=2,
        balanced=False,
    )
    assert verdict(found).startswith("linear wins: accuracy 1.000 against 0.700")
    found = contest(
        labels,
        {"network": _probabilities(labels.tolist()), "linear": _probabilities(wrong.tolist())},
        classes=2,
        balanced=False,
    )
    assert verdict(found).startswith("the network wins: accuracy 1.000 against 0.700")


def test_a_difference_within_the_noise_is_a_tie() -> None:
    labels = np.array([0, 1] * 50)
    one, other = labels.copy(), labels.copy()
    one[:2], other[4:7] = 1 - one[:2], 1 - other[4:7]
    found = contest(
        labels,
        {"network": _probabilities(one.tolist()), "linear": _probabilities(other.tolist())},
        classes=2,
        balanced=False,
    )
    assert "tie" in verdict(found)
