"""Models of scikit-learn that a network for images competes with; the linear one can be exported as a Keras model."""

from __future__ import annotations

from functools import partial

import keras
import numpy as np

from stoker.data.array_types import Array
from stoker.recipes.baselines import (
    CONSTANT,
    LINEAR,
    MOST_FOR_SUPPORT,
    SUPPORT,
    Estimator,
    answer,
    fit_quietly,
    linear_model,
    support_answers,
)
from stoker.recipes.budget import Budget
from stoker.recipes.rival_answers import final_answer
from stoker.recipes.rival_training import (
    Rival,
    RivalKind,
    RivalTask,
    constant_rival,
    knows_all_classes,
    train_rivals,
)
from stoker.recipes.rows import Rows
from stoker.tf_internals.types import Model


def image_rivals(
    train: Rows,
    validation: Rows | None = None,
    *,
    classes: int,
    balanced: bool = False,
    seed: int = 0,
    budget: Budget | None = None,
) -> list[Rival]:
    """Train a constant, a linear model of the pixels and, if there are few rows, support vectors.

    Args:
        train: images as bytes, and their classes.
        validation: rows to choose the exported model on.
        classes: the number of classes.
        balanced: whether all classes count the same.
        seed: the seed of models that draw random numbers.
        budget: the available time.
    """
    task = RivalTask(classes, balanced, seed, budget or Budget())
    # Training these models again on slightly more images would take as long as everything else.
    kinds = [
        RivalKind(CONSTANT, [partial(constant_rival, task)], power=0.0, again=False),
        RivalKind(LINEAR, [partial(_linear, task)], again=False),
    ]
    if len(train) <= MOST_FOR_SUPPORT:
        # Support vectors compare all rows with each other, hence the power of two.
        kinds.append(RivalKind(SUPPORT, [partial(_support, task)], power=2.0, again=False))
    return train_rivals(kinds, train, validation, task)


def _flatten(rows: Rows) -> Array:
    flat: Array = rows.inputs.reshape(len(rows), -1).astype(np.float32) / 255
    return flat


def _linear(task: RivalTask, train: Rows) -> Rival:
    model = linear_model(task.classes, task.balanced)
    fit_quietly(model, _flatten(train), train.labels)
    build = None
    if knows_all_classes(model, task.classes):
        build = partial(_build, model, train.inputs.shape[1:], task.classes)
    return Rival(LINEAR, lambda rows: answer(model, _flatten(rows), task.classes), build)


def _support(task: RivalTask, train: Rows) -> Rival:
    from sklearn.svm import SVC

    machine = SVC(class_weight="balanced" if task.balanced else None).fit(_flatten(train), train.labels)
    return Rival(SUPPORT, lambda rows: support_answers(machine, _flatten(rows), task.classes))


def _build(model: Estimator, shape: tuple[int, ...], classes: int) -> Model:
    """Build a model of Keras' layers that gives the same answers for images as bytes."""
    images = keras.Input(shape, dtype="uint8", name="image")
    pixels = keras.layers.Rescaling(1 / 255, dtype="float64")(images)
    weights = np.atleast_2d(model.coef_).T
    linear = keras.layers.Dense(weights.shape[1], dtype="float64", trainable=False, name="pixels")
    margins = linear(keras.layers.Flatten(dtype="float64")(pixels))
    linear.set_weights([weights, model.intercept_])
    return keras.Model(images, final_answer(margins, classes))
