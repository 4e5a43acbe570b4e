"""What `fit` was given, looked at before anything is built: what makes no sense is said in one line."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

import keras

from stoker.errors import ArgumentError


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """A number of something; NumPy's are as good as Python's."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}={value!r} must be a whole number") from None
    if least is not None and number < least:
        raise ArgumentError(f"{name}={value!r} must be at least {least}")
    return number


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
