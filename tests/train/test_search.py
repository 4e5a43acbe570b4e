"""Searches of the real Optuna and KerasTuner whose trials train together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import stoker
from stoker.errors import ArgumentError

optuna = pytest.importorskip("optuna")
keras_tuner = pytest.importorskip("keras_tuner")

pytestmark = pytest.mark.tensorflow
_RANDOM = np.random.default_rng(0)
X = _RANDOM.standard_normal((96, 4)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5], [0.0]])).astype("float32")
HOW: dict[str, Any] = {"epochs": 3, "batch_size": 16, "validation_split": 0.25, "verbose": 0}


def make(rate: float, width: int = 4, seed: int = 0) -> keras.Model:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(width, "tanh"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(rate), "mse")
    return model


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def test_optuna_trials_have_the_values_of_their_own_fit() -> None:
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))

    def space(trial: Any) -> dict[str, Any]:
        return {
            "rate": trial.suggest_float("rate", 1e-3, 1e-1, log=True),
            "width": trial.suggest_categorical("width", [2, 4]),
            "seed": 1,
        }

    keras.utils.set_random_seed(5)
    found = stoker.search_with_optuna(study, space, make, X, Y, trials=7, at_once=4, **HOW)
    assert found is study
    assert len(study.trials) == 7
    assert all(one.state == optuna.trial.TrialState.COMPLETE for one in study.trials)
    assert {one.params["width"] for one in study.trials} == {2, 4}
    best = study.best_trial
    assert best.user_attrs["config"] == {**best.params, "seed": 1}
    assert [*best.intermediate_values] == [0, 1, 2]
    assert best.value == min(best.intermediate_values.values())
    # The first trial alone, in the order of rows that the search began with.
    first = study.trials[0]
    keras.utils.set_random_seed(1)
    alone = make(**first.params)
    keras.utils.set_random_seed(5)
    history = stoker.fit(alone, X, Y, **HOW)
    assert [*first.intermediate_values.values()] == pytest.approx(history.history["val_loss"], rel=1e-6)


def test_optunas_pruner_ends_a_trial_and_a_loss_that_is_no_number_fails() -> None:
    study = optuna.create_study(pruner=optuna.pruners.ThresholdPruner(upper=1e-9))
    stoker.search_with_optuna(study, lambda trial: {"rate": 1e-3}, make, X, Y, trials=2, **HOW)
    assert [one.state for one in study.trials] == [optuna.trial.TrialState.PRUNED] * 2
    assert all(len(one.intermediate_values) == 1 for one in study.trials)
    study = optuna.create_study()
    stoker.search_with_optuna(study, lambda trial: {"rate": float("nan")}, make, X, Y, trials=1, **HOW)
    assert study.trials[0].state == optuna.trial.TrialState.FAIL


def _build(given: Any) -> keras.Model:
    return make(given.Float("rate", 1e-3, 1e-1, sampling="log"), given.Choice("width", [2, 4]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["RandomSearch", "BayesianOptimization"])
def test_keras_tuner_finds_the_best_model_and_loads_it(kind: str, tmp_path: Path) -> None:
    tuner = getattr(keras_tuner, kind)(
        _build, "val_loss", max_trials=5, directory=tmp_path, project_name="search", seed=0
    )
    stoker.search_with_keras_tuner(tuner, X, Y, at_once=3, **HOW)
    trials = tuner.oracle.get_best_trials(5)
    assert [one.status for one in trials] == ["COMPLETED"] * 5
    assert trials[0].score == min(one.score for one in trials)
    (model,) = tuner.get_best_models(1)
    loss = model.evaluate(X[72:], Y[72:], verbose=0, batch_size=16)
    assert loss == pytest.approx(trials[0].score, rel=1e-5)
    assert tuner.remaining_trials == 0


def test_what_a_tuner_may_not_do_is_said_in_a_line(tmp_path: Path) -> None:
    where: dict[str, Any] = {"directory": tmp_path, "hypermodel": _build}
    for tuner, line in (
        (keras_tuner.Hyperband(objective="val_loss", project_name="a", **where), "Hyperband"),
        (
            keras_tuner.RandomSearch(objective="val_loss", executions_per_trial=2, project_name="b", **where),
            "executions_per_trial=2",
        ),
        (keras_tuner.RandomSearch(objective="val_loss", loss="mae", project_name="c", **where), "loss="),
        (object(), "must be a keras_tuner.Tuner"),
    ):
        with pytest.raises(ArgumentError, match=line):
            stoker.search_with_keras_tuner(tuner, X, Y)
