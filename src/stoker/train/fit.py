"""`stoker.fit`: `model.fit`, with many steps in one compiled call."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras.src.backend import config as keras_config

from stoker.errors import ArgumentError
from stoker.train import checks
from stoker.train.checkpoint.options import Checkpoint
from stoker.train.feeding import sources
from stoker.train.loop.program import KerasProgram, Program
from stoker.train.loop.run import Run
from stoker.train.planning.plan import Plan, parse
from stoker.train.tracebacks import filtered


@filtered
def fit(
    model: Any,
    x: Any = None,
    y: Any = None,
    batch_size: int | None = None,
    epochs: int = 1,
    verbose: Any = "auto",
    callbacks: Any = None,
    validation_split: float = 0.0,
    validation_data: Any = None,
    shuffle: bool | str = True,
    class_weight: Any = None,
    sample_weight: Any = None,
    initial_epoch: int = 0,
    steps_per_epoch: int | None = None,
    validation_steps: int | None = None,
    validation_batch_size: int | None = None,
    validation_freq: int | Sequence[int] = 1,
    *,
    plan: Plan | str | Mapping[str, Any] | None = None,
    checkpoint: Any = None,
) -> Any:
    """Train a compiled Keras model: the arguments, the history and the numbers of `model.fit`, much faster.

    Args:
        model: a compiled Keras model. The other positional arguments are those of `model.fit`.
        plan: how to run, instead of having it decided: a `stoker.Plan`, a dict, or words such as "resident, loop".
        checkpoint: a directory, or a `stoker.Checkpoint`: the same call after a crash goes on where it was.

    Returns:
        Keras' `History`; its `plan` says how it ran and why.

    Raises:
        ArgumentError: a value that makes no sense; a `ValueError`.
    """
    _check(model)
    return train_program(
        KerasProgram(model),
        x,
        y,
        batch_size,
        epochs,
        verbose,
        callbacks,
        validation_split,
        validation_data,
        shuffle,
        class_weight,
        sample_weight,
        initial_epoch,
        steps_per_epoch,
        validation_steps,
        validation_batch_size,
        validation_freq,
        plan=plan,
        checkpoint=checkpoint,
    )


def train_program(
    program: Program,
    x: Any = None,
    y: Any = None,
    batch_size: int | None = None,
    epochs: int = 1,
    verbose: Any = "auto",
    callbacks: Any = None,
    validation_split: float = 0.0,
    validation_data: Any = None,
    shuffle: bool | str = True,
    class_weight: Any = None,
    sample_weight: Any = None,
    initial_epoch: int = 0,
    steps_per_epoch: int | None = None,
    validation_steps: int | None = None,
    validation_batch_size: int | None = None,
    validation_freq: int | Sequence[int] = 1,
    *,
    plan: Plan | str | Mapping[str, Any] | None = None,
    checkpoint: Any = None,
) -> Any:
    """`fit` for any program."""
    wanted = parse(plan)
    epochs = checks.whole_number("epochs", epochs)
    batch_size = checks.optional_number("batch_size", batch_size)
    steps_per_epoch = checks.optional_number("steps_per_epoch", steps_per_epoch)
    checks.share("validation_split", validation_split)
    checks.class_weights(class_weight)
    checks.callbacks(callbacks)
    if validation_split and validation_data is None:
        (x, y, sample_weight), validation_data = sources.split(x, y, sample_weight, validation_split)
    run = Run(
        program,
        sources.source(
            x,
            y,
            sample_weight,
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            shuffle=shuffle,
            class_weight=class_weight,
        ),
        _held_out(validation_data, validation_batch_size or batch_size, validation_steps),
        callbacks=callbacks,
        verbose=verbose,
        epochs=_capped(epochs),
        initial_epoch=initial_epoch,
        validation_freq=validation_freq,
        plan=wanted,
        checkpoint=None if checkpoint is None else Checkpoint.of(checkpoint),
    )
    return run.train()


def _held_out(validation_data: Any, batch_size: int | None, steps: int | None) -> sources.Source | None:
    if validation_data is None:
        return None
    x, y, weights = sources.validation_parts(validation_data)
    return sources.source(x, y, weights, batch_size=batch_size, steps_per_epoch=steps, name="validation_data")


def _check(model: Any) -> None:
    if not isinstance(model, keras.Model):
        raise ArgumentError(f"fit trains a keras.Model, not {type(model).__name__}")
    if not model.compiled:
        raise ArgumentError(
            "the model is not compiled: call model.compile(optimizer, loss) before stoker.fit"
        )
    if model.distribute_strategy.num_replicas_in_sync > 1:
        raise ArgumentError(
            f"the model was made under a {type(model.distribute_strategy).__name__} with "
            f"{model.distribute_strategy.num_replicas_in_sync} replicas, which stoker.fit does not support yet: "
            "use model.fit, or make the model outside of the strategy's scope"
        )


def _capped(epochs: int) -> int:
    cap = keras_config.max_epochs()
    if cap and cap < epochs:
        warnings.warn(f"Limiting epochs to {cap}", stacklevel=3)
        return int(cap)
    return epochs
