"""What `fit` was given, looked at before anything is built: what makes no sense is said in one line."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import keras
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

from stoker.errors import ArgumentError, whole_number


def optional_number(name: str, value: Any) -> int | None:
    """A number of steps or rows, or None. As under Keras 0 is None, too."""
    return None if value is None else whole_number(name, value, 0)


def share(name: str, value: Any) -> None:
    """The part of the rows that is held out."""
    if not isinstance(value, int | float) or not 0 <= value < 1:
        raise ArgumentError(f"{name}={value!r} must lie between 0 and 1, such as 0.2")


def class_weights(value: Any) -> None:
    """Weights by class."""
    if value is not None and not isinstance(value, Mapping):
        raise ArgumentError(
            f"class_weight must be a dict such as {{0: 1.0, 1: 2.5}}, not {type(value).__name__}"
        )


def callbacks(given: Any) -> None:
    """Callbacks, not their classes."""
    if given is None or isinstance(given, keras.callbacks.CallbackList):
        return
    for one in given if isinstance(given, Iterable) else [given]:
        if isinstance(one, type):
            raise ArgumentError(f"callbacks: {one.__name__} is a class: give {one.__name__}(...)")
        if not isinstance(one, keras.callbacks.Callback):
            raise ArgumentError(f"callbacks: give objects of keras.callbacks.Callback, not {one!r}")


def rate_factor(asked: Any, replicas: int) -> float:
    """What `scale_rate=` multiplies all rates by."""
    if asked is False:
        return 1.0
    if asked is True or asked == "linear":
        return float(replicas)
    if asked == "sqrt":
        return math.sqrt(replicas)
    raise ArgumentError(f"scale_rate={asked!r}: give True (times the number of replicas), 'sqrt' or False")


def keras_trainer(model: Any) -> None:
    """A model, or a layer that Keras' `Trainer` was mixed into."""
    if not isinstance(model, TensorFlowTrainer):
        raise ArgumentError(f"fit trains a keras.Model, not {type(model).__name__}")


def nothing_bypassed(model: Any, validated: bool) -> None:
    """A method of the model's own that `model.fit` would call and a compiled loop would not."""
    refused = [
        ("make_train_function", "override train_step"),
        ("fit", "put what it adds into train_step or a callback"),
    ]
    if validated:
        refused.append(("make_test_function", "override test_step"))
        if _is_own(model, "evaluate"):
            # Not refused: such a method often only passes on to `stoker.evaluate`.
            warnings.warn(
                f"{type(model).__name__} has an evaluate of its own, which validation in stoker.fit does not call: "
                "use model.fit, or put what it adds into test_step",
                stacklevel=5,
            )
    for name, instead in refused:
        # A model whose own `fit` calls `stoker.fit` means it.
        if _is_own(model, name) and not _called_from(getattr(type(model), name)):
            raise ArgumentError(
                f"{type(model).__name__} has a {name} of its own, which stoker.fit would not call: "
                f"use model.fit, or {instead}"
            )


def _is_own(model: Any, name: str) -> bool:
    return getattr(type(model), name) is not getattr(TensorFlowTrainer, name) or name in vars(model)


def _called_from(function: Any) -> bool:
    frame = sys._getframe(1)
    code = getattr(function, "__code__", None)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None
