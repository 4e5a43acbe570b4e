"""The models that compete with the network, and how to find the best way to train each in the available time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from stoker.data.array_types import Array
from stoker.recipes.baselines import CONSTANT, Estimator, constant, import_models
from stoker.recipes.budget import Budget
from stoker.recipes.choosing import mean_loss
from stoker.recipes.rows import Rows
from stoker.tf_internals.types import Model


@dataclass(frozen=True)
class Rival:
    """A trained model that competes with the network.

    Attributes:
        name: its name in the report.
        predict: the answers for rows: probabilities of the classes, or numbers.
        build: makes the Keras model that gives the same answers for raw rows; None if there can be no such model.
        validation: the answers for the validation rows, from before the model learned from these rows, too.
        learn_again: trains such a model on other rows.
    """

    name: str
    predict: Callable[[Rows], Array]
    build: Callable[[], Model] | None = None
    validation: Array | None = None
    learn_again: Callable[[Rows], Rival] | None = None


@dataclass(frozen=True)
class RivalTask:
    """The task of the rivals, and the time they have.

    Attributes:
        classes: how many classes the labels have; 0 for numbers.
        balanced: whether all classes count the same.
        seed: the seed of models that draw random numbers.
        budget: the time for all of them.
    """

    classes: int
    balanced: bool
    seed: int
    budget: Budget


@dataclass(frozen=True)
class RivalKind:
    """A kind of model, and how to train it.

    Attributes:
        name: its name in the report.
        ways: functions that each train such a model; the usual one is in the middle.
        power: the time of a training grows with the rows to this power; 0 if it takes no time.
        again: whether the best model finally learns from the validation rows, too.
    """

    name: str
    ways: Sequence[Callable[[Rows], Rival]]
    power: float = 1.1
    again: bool = True


def train_rivals(
    kinds: Sequence[RivalKind], train: Rows, validation: Rows | None, task: RivalTask
) -> list[Rival]:
    """Return the best model of each kind. The time is shared among the kinds that are left.

    When the time is up, the remaining kinds are left out if there is a model that can be exported.

    Args:
        kinds: the kinds of models.
        train: the rows to learn from.
        validation: the rows to choose on.
        task: what the models learn.
    """
    import_models()
    if task.classes and len(np.unique(train.labels)) == 1:
        # There is nothing to learn, so every model answers as the constant does.
        kinds = [RivalKind(kind.name, [partial(constant_rival, task, name=kind.name)]) for kind in kinds]
    found: list[Rival] = []
    for number, kind in enumerate(kinds):
        if task.budget.left_s <= 0 and any(one.build is not None for one in found):
            task.budget.cut(f"No time to train {kind.name}.")
            continue
        limit_s = task.budget.rivals_s() / (len(kinds) - number)
        found.append(_train_best(kind, train, validation, task, limit_s))
    return found


def _train_best(
    kind: RivalKind, train: Rows, validation: Rows | None, task: RivalTask, limit_s: float
) -> Rival:
    """Train a model in the best of several ways, then again with the validation rows added."""
    budget, ways = task.budget, kind.ways
    ends_s = budget.elapsed_s + limit_s
    usual = len(ways) // 2
    # Each of the other ways, and training again at the end, takes as long as the first.
    steps = 1 if validation is None else len(ways) + kind.again
    model, rows, took_s = budget.fit_in_time(kind.name, ways[usual], train, limit_s / steps, kind.power)
    if validation is None:
        return model
    tried = {usual: model}
    for number, way in enumerate(ways):
        if number != usual and budget.elapsed_s + took_s <= ends_s:
            tried[number] = way(rows)
    answers = {number: tried[number].predict(validation) for number in sorted(tried)}
    best = min(answers, key=lambda number: _loss(validation, answers[number], task))
    model = tried[best]
    more = rows.join(validation)
    if kind.again and budget.elapsed_s + took_s * (len(more) / len(rows)) ** kind.power <= ends_s:
        model = ways[best](more)
    return replace(model, validation=answers[best], learn_again=ways[best])


def _loss(validation: Rows, answers: Array, task: RivalTask) -> float:
    return mean_loss(validation.labels, answers, classes=task.classes, balanced=task.balanced)


def constant_rival(task: RivalTask, train: Rows, name: str = CONSTANT) -> Rival:
    """Return a model that gives the same answer for every row."""
    return Rival(name, lambda rows: constant(train.labels, len(rows), task.classes, task.balanced))


def knows_all_classes(model: Estimator, classes: int) -> bool:
    """Return whether a trained model of scikit-learn has seen every class."""
    return not classes or len(model.classes_) == classes
