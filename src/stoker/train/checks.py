"""What `fit` was given, looked at before anything is built: what makes no sense is said in one line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import keras

from stoker.errors import ArgumentError, whole_number
from stoker.tf_internals.types import Callbacks, Model
from stoker.train.execution.own_methods import is_own, is_set_by_user


def optional_number(name: str, value: object) -> int | None:
    """A number of steps or rows, or None. As under Keras 0 is None, too."""
    return None if value is None else whole_number(name, value, 0)


def share(name: str, value: object) -> None:
    """The part of the rows that is held out."""
    if not isinstance(value, int | float) or not 0 <= value < 1:
        raise ArgumentError(f"{name}={value!r} must lie between 0 and 1, such as 0.2")


def class_weights(value: object) -> None:
    """Weights by class."""
    if value is not None and not isinstance(value, Mapping):
        raise ArgumentError(
            f"class_weight must be a dict such as {{0: 1.0, 1: 2.5}}, not {type(value).__name__}"
        )


def callbacks(given: Callbacks) -> None:
    """Callbacks, not their classes."""
    if given is None or isinstance(given, keras.callbacks.CallbackList):
        return
    for one in given if isinstance(given, Iterable) else [given]:
        if isinstance(one, type):
            raise ArgumentError(f"callbacks: {one.__name__} is a class: give {one.__name__}(...)")
        if not isinstance(one, keras.callbacks.Callback):
            raise ArgumentError(f"callbacks: give objects of keras.callbacks.Callback, not {one!r}")


def rate_factor(asked: object, replicas: int) -> float:
    """What `scale_rate=` multiplies all rates by."""
    if asked is False:
        return 1.0
    if asked is True or asked == "linear":
        return float(replicas)
    if asked == "sqrt":
        return math.sqrt(replicas)
    raise ArgumentError(f"scale_rate={asked!r}: give True (times the number of replicas), 'sqrt' or False")


def nothing_bypassed(model: Model, validated: bool) -> None:
    """A method of the model's own that `model.fit` would call and a compiled loop would not."""
    for name, function, instead in (
        ("make_train_function", "train_function", "train_step"),
        ("make_test_function", "test_function", "test_step"),
    ):
        if name == "make_test_function" and not validated:
            continue
        for method, holds in ((name, is_own(model, name)), (function, is_set_by_user(model, function))):
            if holds:
                raise ArgumentError(
                    f"{type(model).__name__} overrides {method}, which stoker.fit would not call: "
                    f"use model.fit, or override {instead}"
                )
