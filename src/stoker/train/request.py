"""The arguments of a call of `fit`, read and checked once, whether the step is Keras' or the user's."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import keras

from stoker.errors import ArgumentError, whole_number
from stoker.tf_internals.types import Callbacks, ClassWeight, Data, Verbose
from stoker.train.checkpoint.options import Checkpoint, CheckpointLike
from stoker.train.execution.feeding import sources
from stoker.train.planning.memory import parse_memory
from stoker.train.planning.plan import PlanLike, parse


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """The arguments of `stoker.fit` and `Trainer.fit`."""

    x: Data
    y: Data
    batch_size: int | None
    epochs: int
    verbose: Verbose
    callbacks: Callbacks
    validation_split: float
    validation_data: Data
    shuffle: bool | str
    sample_weight: Data
    initial_epoch: int
    steps_per_epoch: int | None
    validation_steps: int | None
    validation_batch_size: int | None
    validation_freq: int | Sequence[int]
    plan: PlanLike
    checkpoint: CheckpointLike
    divide: str
    data_service: str | None
    scale_rate: bool | str
    class_weight: ClassWeight = None
    tune: bool = False
    memory: int | str | None = None
    # The arguments, by name, of the model's own `fit`, from which it made these.
    original: Mapping[str, object] | None = None

    @classmethod
    def from_call(
        cls, arguments: Mapping[str, Any], original: Mapping[str, object] | None = None
    ) -> FitRequest:
        """Make the request from the `locals()` of the function, whose signature is the only list of arguments."""
        known = {one.name for one in fields(cls)}
        given = {name: value for name, value in arguments.items() if name in known}
        return cls(**given, original=original)

    def check(self) -> FitRequest:
        """Return the same request, with its numbers, its plan and its checkpoint options checked and parsed.

        Raises:
            ArgumentError: a value is invalid.
        """
        split, weights = self.validation_split, self.class_weight
        plan = parse(self.plan)
        epochs = whole_number("epochs", self.epochs)
        batch_size = _read_count("batch_size", self.batch_size)
        steps_per_epoch = _read_count("steps_per_epoch", self.steps_per_epoch)
        if not isinstance(split, int | float) or not 0 <= split < 1:
            raise ArgumentError(f"validation_split={split!r} must lie between 0 and 1, such as 0.2")
        if weights is not None and not isinstance(weights, Mapping):
            raise ArgumentError(
                f"class_weight must be a dict such as {{0: 1.0, 1: 2.5}}, not {type(weights).__name__}"
            )
        _check_callbacks(self.callbacks)
        memory = parse_memory(self.memory)
        return replace(
            self,
            plan=plan,
            epochs=_cap_epochs(epochs),
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            memory=memory,
            checkpoint=None if self.checkpoint is None else Checkpoint.of(self.checkpoint),
        )

    def list_given_data(self) -> dict[str, Data]:
        """Return the data as the user gave it, by name."""
        given = vars(self) if self.original is None else self.original
        training = tuple(given.get(part) for part in ("x", "y", "sample_weight"))
        named = {"data": training if any(part is not None for part in training[1:]) else training[0]}
        held_out = given.get("validation_data")
        return named if held_out is None else {**named, "validation data": held_out}

    def evaluate_arguments(self) -> dict[str, Any]:
        """Return the arguments with which Keras' `fit` calls `evaluate` to validate."""
        x, y, weights = sources.validation_parts(self.validation_data)
        size = self.validation_batch_size or self.batch_size
        return {"x": x, "y": y, "sample_weight": weights, "batch_size": size, "steps": self.validation_steps}


def _read_count(name: str, value: object) -> int | None:
    """Return a number of steps or rows, or None. As in Keras, 0 means None."""
    return None if value is None else whole_number(name, value, 0)


def _check_callbacks(given: Callbacks) -> None:
    if given is None or isinstance(given, keras.callbacks.CallbackList):
        return
    for one in given if isinstance(given, Iterable) else [given]:
        if isinstance(one, type):
            raise ArgumentError(f"callbacks: {one.__name__} is a class: give {one.__name__}(...)")
        if not isinstance(one, keras.callbacks.Callback):
            raise ArgumentError(f"callbacks: give objects of keras.callbacks.Callback, not {one!r}")


def rate_factor(asked: object, replicas: int) -> float:
    """Return the factor that `scale_rate=` puts on all rates."""
    if asked is False:
        return 1.0
    if asked is True or asked == "linear":
        return float(replicas)
    if asked == "sqrt":
        return math.sqrt(replicas)
    raise ArgumentError(f"scale_rate={asked!r}: give True (times the number of replicas), 'sqrt' or False")


def _cap_epochs(epochs: int) -> int:
    cap = keras.config.max_epochs()
    if cap and cap < epochs:
        warnings.warn(f"Limiting epochs to {cap}", stacklevel=5)
        return int(cap)
    return epochs
