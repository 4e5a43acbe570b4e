"""Runs searches of Optuna and KerasTuner with several trials at once, with `fit_many` as their executor."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras

from stoker.errors import ArgumentError, StokerError, whole_number
from stoker.tf_internals.types import Callback, Data, Model
from stoker.train.fit_many import fit_many
from stoker.train.many.members import Config, Member, make_members

if TYPE_CHECKING:
    import keras_tuner
    import optuna

_TUNER_ID = "stoker-{}"
# The files that `tuner.get_best_models` looks for in the directory of a trial.
_WEIGHTS, _BUILD = "checkpoint.weights.h5", "build_config.json"


def search_with_optuna(
    study: optuna.Study,
    space: Callable[[optuna.Trial], Config],
    make_model: Callable[..., Model],
    x: Data = None,
    y: Data = None,
    *,
    trials: int,
    at_once: int = 8,
    monitor: str | None = None,
    callbacks: Sequence[Callback] = (),
    **fit: Any,
) -> optuna.Study:
    """Run trials of an Optuna study, several at once in one compiled loop.

    Args:
        study: the study; its sampler suggests the configs, its pruner may end a trial after any epoch.
        space: returns the arguments of `make_model` for a trial, from `trial.suggest_float` and similar methods.
        make_model: called as `make_model(**config)`; returns a compiled Keras model.
        x, y: the data, as `model.fit` takes them.
        trials: how many trials to run.
        at_once: how many trials the sampler suggests before it learns their values.
        monitor: the name of a trial's value, taken from its best epoch; "val_loss" with validation data, else "loss".
        callbacks: each trial gets copies.
        fit: further arguments of `fit_many`.

    Returns:
        The study. A trial's user attribute `config` holds its config if it can be written as JSON.

    Raises:
        ArgumentError: an argument is invalid.
        StokerError: Optuna is not installed.
    """
    optuna = _import("optuna", "optuna")
    whole_number("trials", trials, 1)
    whole_number("at_once", at_once, 1)
    name = monitor or _default_monitor(fit)
    wanted = "min" if study.direction == optuna.study.StudyDirection.MINIMIZE else "max"
    left = trials
    while left > 0:
        asked = [study.ask() for _ in range(min(at_once, left))]
        left -= len(asked)
        configs = [space(trial) for trial in asked]
        for trial, config in zip(asked, configs, strict=True):
            if _is_json(config):
                trial.set_user_attr("config", dict(config))
        watchers = [OptunaWatcher(trial, name) for trial in asked]
        for batch in group_alike(make_members(make_model, configs)):
            own = [
                _AskedTrial(
                    one.model,
                    [*copy.deepcopy(list(callbacks)), _keep_best(name, wanted), watchers[one.number]],
                )
                for one in batch
            ]
            values = _fit_together(own, x, y, name, wanted, fit)
            for member, value in zip(batch, values, strict=True):
                trial = asked[member.number]
                if watchers[member.number].pruned:
                    study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                elif value is None or math.isnan(value):
                    study.tell(trial, state=optuna.trial.TrialState.FAIL)
                else:
                    study.tell(trial, value)
    return study


def search_with_keras_tuner(
    tuner: keras_tuner.Tuner,
    x: Data = None,
    y: Data = None,
    *,
    at_once: int = 8,
    callbacks: Sequence[Callback] = (),
    **fit: Any,
) -> None:
    """Do what `tuner.search(x, y, ...)` does, several trials at once in one compiled loop.

    Args:
        tuner: a RandomSearch, GridSearch, BayesianOptimization, or a Tuner with an oracle of yours; not a Hyperband.
        x, y: the data, as `model.fit` takes them.
        at_once: how many trials the oracle suggests before it learns their scores.
        callbacks: each trial gets copies.
        fit: further arguments of `fit_many`.

    Raises:
        ArgumentError: the tuner does more than build, fit and compare models.
        StokerError: KerasTuner is not installed.
    """
    library = _import("keras_tuner", "keras-tuner")
    whole_number("at_once", at_once, 1)
    _check_tuner(library, tuner)
    objective = tuner.oracle.objective
    tuner.on_search_begin()
    while trials := list(_create_trials(library, tuner, at_once)):
        for trial in trials:
            tuner.on_trial_begin(trial)
        members = make_members(
            lambda place: tuner.hypermodel.build(trials[place].hyperparameters),
            [{"place": place} for place in range(len(trials))],
        )
        for batch in group_alike(members):
            own = [
                _AskedTrial(
                    one.model,
                    [*copy.deepcopy(list(callbacks)), _keep_best(objective.name, objective.direction)],
                )
                for one in batch
            ]
            values = _fit_together(own, x, y, objective.name, objective.direction, fit)
            for member, asked, value in zip(batch, own, values, strict=True):
                _end_trial(tuner, trials[member.number], asked, value)
    tuner.on_search_end()


@dataclass
class _AskedTrial:
    """A model to train, with its callbacks."""

    model: Model
    callbacks: list[Callback]
    best_epoch: int = 0
    logs: dict[str, float] = field(default_factory=dict)


class OptunaWatcher(keras.callbacks.Callback):
    """Reports a trial's value after each epoch, and ends the trial if the study's pruner says so.

    Args:
        trial: the trial of the study.
        monitor: the name of the value.
    """

    every_batch = False

    def __init__(self, trial: Any, monitor: str) -> None:
        super().__init__()
        self.trial, self.monitor, self.pruned = trial, monitor, False

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        value = (logs or {}).get(self.monitor)
        if value is None:
            return
        self.trial.report(float(value), epoch)
        if self.trial.should_prune():
            self.pruned = True
            self.model.stop_training = True


def group_alike(members: Sequence[Member]) -> list[list[Member]]:
    """Group the members by architecture: those of one list can be trained together."""
    found: dict[object, list[Member]] = {}
    for member in members:
        shapes = tuple((tuple(one.shape), str(one.dtype)) for one in member.model.trainable_variables)
        found.setdefault((type(member.model), member.model.built, shapes), []).append(member)
    return list(found.values())


def _fit_together(
    asked: Sequence[_AskedTrial], x: Data, y: Data, monitor: str, mode: str, fit: Mapping[str, Any]
) -> list[float | None]:
    """Train the models in one loop, which leaves each with its best epoch's weights; return that epoch's values."""
    result = fit_many(
        lambda place: asked[place].model,
        [{"place": place} for place in range(len(asked))],
        x,
        y,
        callbacks=lambda config: asked[config["place"]].callbacks,
        monitor=monitor,
        mode=mode,
        **fit,
    )
    values: list[float | None] = []
    for one, member in zip(asked, result, strict=True):
        history = member.history.history
        series = [value if not math.isnan(value) else None for value in history.get(monitor, ())]
        known = [value for value in series if value is not None]
        value = None if not known else min(known) if mode == "min" else max(known)
        values.append(value)
        if value is not None:
            one.best_epoch = series.index(value)
            one.logs = {name: float(found[one.best_epoch]) for name, found in history.items()}
    return values


def _keep_best(monitor: str, mode: str) -> Callback:
    """Return a callback that never stops a training, but leaves the weights of the best epoch."""
    return keras.callbacks.EarlyStopping(
        monitor=monitor, mode=mode, patience=2**31, restore_best_weights=True, start_from_epoch=0
    )


def _create_trials(library: Any, tuner: Any, most: int) -> Iterator[Any]:
    """Yield the trials to run now; none if the search is over."""
    status = library.engine.trial.TrialStatus
    for number in range(most):
        tuner.pre_create_trial()
        trial = tuner.oracle.create_trial(_TUNER_ID.format(number))
        if trial.status in (status.STOPPED, status.IDLE):
            # The search is over, or the oracle waits for the trials of this round.
            return
        yield trial


def _end_trial(tuner: Any, trial: Any, asked: _AskedTrial, value: float | None) -> None:
    if value is None:
        trial.status = "FAILED"
        trial.message = f"{tuner.oracle.objective.name} is not a number"
    else:
        tuner.oracle.update_trial(trial.trial_id, asked.logs, step=asked.best_epoch)
        directory = Path(tuner.get_trial_dir(trial.trial_id))
        asked.model.save_weights(directory / _WEIGHTS)
        (directory / _BUILD).write_text(json.dumps(asked.model.get_build_config()), encoding="utf-8")
        trial.status = "COMPLETED"
    tuner.on_trial_end(trial)


def _check_tuner(library: Any, tuner: Any) -> None:
    if not isinstance(tuner, library.Tuner):
        raise ArgumentError(f"tuner must be a keras_tuner.Tuner, not {type(tuner).__name__}")
    if isinstance(tuner, library.Hyperband):
        raise ArgumentError(
            "a Hyperband tuner continues earlier trials: use RandomSearch or BayesianOptimization, or tuner.search"
        )
    if tuner.oracle.objective.name in ("multi_objective", "default_objective"):
        raise ArgumentError("give the tuner one objective, such as objective='val_loss', or use tuner.search")
    if tuner.executions_per_trial != 1:
        raise ArgumentError(
            f"executions_per_trial={tuner.executions_per_trial}: give each execution a trial, or use tuner.search"
        )
    for name in ("optimizer", "loss", "metrics"):
        if getattr(tuner, name, None) is not None:
            raise ArgumentError(f"the tuner has {name}=: compile the model in build(hp) instead")


def _default_monitor(fit: Mapping[str, Any]) -> str:
    validated = bool(fit.get("validation_split")) or fit.get("validation_data") is not None
    return "val_loss" if validated else "loss"


def _is_json(config: Config) -> bool:
    try:
        json.dumps(dict(config))
    except (TypeError, ValueError):
        return False
    return True


def _import(module: str, extra: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise StokerError(
            f"this search needs {error.name}: install it with pip install 'stoker[{extra}]'"
        ) from None
