"""Which model is exported: the best on the validation rows, or a mix that is clearly better."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker.recipes.choosing import choose_weights, measure_losses


def test_the_model_with_the_lowest_loss_is_chosen() -> None:
    labels = np.arange(20.0)
    assert choose_weights(
        labels, {"network": labels + 3, "linear": labels + 0.1}, classes=0, balanced=False
    ) == {"linear": 1.0}


def test_models_that_err_on_opposite_sides_are_mixed() -> None:
    labels = np.arange(20.0)
    assert choose_weights(
        labels, {"network": labels + 1, "trees": labels - 3}, classes=0, balanced=False
    ) == {
        "network": 0.75,
        "trees": 0.25,
    }


def test_a_mix_that_gains_next_to_nothing_is_not_worth_it() -> None:
    labels: Any = np.zeros(2000)
    noise: Any = np.random.default_rng(0).normal(size=2000)
    assert choose_weights(labels, {"network": noise, "linear": noise * 1.001}, classes=0, balanced=False) == {
        "network": 1.0
    }


def test_the_losses_that_decided_are_those_of_all_models_and_of_the_mix() -> None:
    labels = np.arange(20.0)
    answers = {"network": labels + 1, "trees": labels - 3}
    assert measure_losses(labels, answers, {"network": 1.0}) == {"network": 1.0, "trees": 3.0}
    mixed = measure_losses(labels, answers, {"network": 0.75, "trees": 0.25})
    assert mixed == {"network": 1.0, "trees": 3.0, "ensemble": 0.0}


def test_rare_classes_count_as_much_when_balanced() -> None:
    labels: Any = np.array([0] * 90 + [1] * 10)
    never = np.tile([0.95, 0.05], (100, 1))
    careful = np.where((labels == 1)[:, None], [0.2, 0.8], [0.7, 0.3])
    answers = {"network": never, "linear": careful}
    assert choose_weights(labels, answers, classes=2, balanced=True) == {"linear": 1.0}
    assert "network" in choose_weights(labels, answers, classes=2, balanced=False)
