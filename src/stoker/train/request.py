"""What a call of `fit` asks for: its arguments, checked and read once, whoever's step it trains."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf
from keras.src.backend import config as keras_config

from stoker.errors import ArgumentError, whole_number
from stoker.train import checks, prepared_data
from stoker.train.checkpoint.options import Checkpoint
from stoker.train.execution.feeding import sources
from stoker.train.loop.run import Run
from stoker.train.planning.plan import Plan, parse
from stoker.train.program import Program
from stoker.train.workers.distributed_data import check_distributed
from stoker.train.workers.group import Group
from stoker.train.workers.service import served
from stoker.train.workers.shares import Share, divided


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of `stoker.fit` and `Trainer.fit`, as they were given."""

    x: Any
    y: Any
    batch_size: int | None
    epochs: int
    verbose: Any
    callbacks: Any
    validation_split: float
    validation_data: Any
    shuffle: bool | str
    sample_weight: Any
    initial_epoch: int
    steps_per_epoch: int | None
    validation_steps: int | None
    validation_batch_size: int | None
    validation_freq: int | Sequence[int]
    plan: Plan | str | Mapping[str, Any] | None
    checkpoint: Any
    class_weight: Any = None
    tune: bool = False
    divide: str = "share"
    data_service: str | None = None
    scale_rate: bool | str = False
    # By name, what a `fit` of the model's own was given, of which it made these.
    original: Mapping[str, Any] | None = None

    def run(self, program: Program) -> Run:
        """The training run of a program.

        Raises:
            ArgumentError: a value that makes no sense.
        """
        wanted = parse(self.plan)
        epochs = whole_number("epochs", self.epochs)
        batch_size = checks.optional_number("batch_size", self.batch_size)
        steps_per_epoch = checks.optional_number("steps_per_epoch", self.steps_per_epoch)
        checks.share("validation_split", self.validation_split)
        checks.class_weights(self.class_weight)
        checks.callbacks(self.callbacks)
        if not program.group.alone:
            _check_swaps(self.callbacks)
        options = {
            "class_weight": self.class_weight,
            "checkpoint": self.checkpoint,
            "data_service": self.data_service,
        }
        check_distributed(self.x, self.validation_data, options, program.group)
        x = self.x
        if self.tune or wanted.tuned:
            x, gained, figures = self._tuned()
            wanted = wanted.because(gained, tuned=True, figures={**wanted.figures, **figures})
        elif (kept := self._kept_in_memory(epochs, steps_per_epoch)) is not None:
            x, wanted = kept, wanted.because(prepared_data.REASON)
        data: tuple[Any, Any, Any] = (x, self.y, self.sample_weight)
        validation_data = self.validation_data
        if self.validation_split and validation_data is None:
            data, validation_data = sources.split(*data, self.validation_split)
        share = self._share(data, batch_size, program.group)
        program.reads(apart=share.apart)
        factor = checks.rate_factor(self.scale_rate, program.group.replicas)
        program.scales_rates(factor)
        if factor != 1:
            wanted = wanted.because(f"rates times {factor:.4g} for {program.group.replicas} replicas")
        return Run(
            program,
            sources.source(
                share.x,
                share.y,
                share.sample_weight,
                batch_size=share.batch_size,
                steps_per_epoch=steps_per_epoch,
                shuffle=self.shuffle,
                class_weight=self.class_weight,
            ),
            self._held_out(validation_data, batch_size),
            validation=self._validation(validation_data, batch_size),
            callbacks=self.callbacks,
            verbose=self.verbose,
            epochs=_capped(epochs),
            initial_epoch=self.initial_epoch,
            validation_freq=self.validation_freq,
            plan=wanted,
            checkpoint=None if self.checkpoint is None else Checkpoint.of(self.checkpoint),
            given=self._given(),
            share=share,
        )

    def _share(self, data: tuple[Any, Any, Any], batch_size: int | None, group: Group) -> Share:
        """What this worker reads."""
        if self.data_service is None:
            return divided(*data, batch_size, self.divide, group)
        if self.divide != "share":
            raise ArgumentError(
                f"divide={self.divide!r} and data_service= both say who reads what: leave one out"
            )
        return served(*data, self.data_service, group, checkpoint=self.checkpoint is not None)

    def _kept_in_memory(self, epochs: int, steps_per_epoch: int | None) -> Any:
        """What a `fit` of the model's own prepared, with a cache; None if there is no sense in one."""
        # A checkpoint would have to hold the cache, and only a whole pass fills it.
        if self.checkpoint is not None or epochs - self.initial_epoch < 2 or steps_per_epoch:
            return None
        return prepared_data.kept_in_memory(self.x, self.original)

    def _tuned(self) -> tuple[Any, str, dict[str, float]]:
        """The pipeline, tuned, and what that brought in words and figures."""
        if not isinstance(self.x, tf.data.Dataset):
            raise ArgumentError(f"tune=True needs x to be a tf.data.Dataset, not {type(self.x).__name__}")
        if self.checkpoint is not None:
            raise ArgumentError(
                "tune=True cannot be used with checkpoint=: what the tuner changes may differ from run to run, and the "
                "place in one pipeline is not a place in another"
            )
        # The tuner is needed only by those who ask for it.
        from stoker.data.tuning.tuner import tune

        tuned = tune(self.x)
        report = tuned.tuning
        rates = {"input_before_per_s": report.before, "input_after_per_s": report.after}
        figures = {name: round(rate, 1) for name, rate in rates.items() if rate is not None}
        if not report.changes:
            return tuned, "the input was left as it is, nothing makes it faster", figures
        changed = ", ".join(change.name for change in report.changes)
        return tuned, f"the input was tuned, {report.gain:.1f}x ({changed})", figures

    def _given(self) -> dict[str, Any]:
        """The data as the user gave it, by name."""
        given = vars(self) if self.original is None else self.original
        training = tuple(given.get(part) for part in ("x", "y", "sample_weight"))
        named = {"data": training if any(part is not None for part in training[1:]) else training[0]}
        held_out = given.get("validation_data")
        return named if held_out is None else {**named, "validation data": held_out}

    def _held_out(self, validation_data: Any, batch_size: int | None) -> sources.Source | None:
        given = self._validation(validation_data, batch_size)
        if given is None:
            return None
        return sources.source(
            given["x"],
            given["y"],
            given["sample_weight"],
            batch_size=given["batch_size"],
            steps_per_epoch=given["steps"],
            name="validation_data",
        )

    def _validation(self, validation_data: Any, batch_size: int | None) -> dict[str, Any] | None:
        """What Keras' `fit` calls `evaluate` with."""
        if validation_data is None:
            return None
        x, y, weights = sources.validation_parts(validation_data)
        size = self.validation_batch_size or batch_size
        return {"x": x, "y": y, "sample_weight": weights, "batch_size": size, "steps": self.validation_steps}


def _check_swaps(callbacks: Any) -> None:
    """The chief alone calls the callbacks of a job: weights that one of them swaps for a validation stay its own."""
    listed = getattr(callbacks, "callbacks", callbacks) or []
    for one in listed if isinstance(listed, Iterable) else [listed]:
        if isinstance(one, keras.callbacks.SwapEMAWeights):
            raise ArgumentError(
                "SwapEMAWeights swaps the weights of one worker alone: leave it out in a job of several workers; "
                "the averages of use_ema=True are in the model after the last epoch"
            )


def _capped(epochs: int) -> int:
    cap = keras_config.max_epochs()
    if cap and cap < epochs:
        warnings.warn(f"Limiting epochs to {cap}", stacklevel=4)
        return int(cap)
    return epochs
