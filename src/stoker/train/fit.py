"""`stoker.fit`: `model.fit`, with many steps in one compiled call."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras.src.backend import config as keras_config

from stoker.errors import ArgumentError
from stoker.train import arguments, hooks
from stoker.train.engine import Engine, Stretch, Validation, tempo_for
from stoker.train.feeds import Feed
from stoker.train.loop import Loop
from stoker.train.pace import Pace
from stoker.train.plan import Plan, parse
from stoker.train.program import KerasProgram
from stoker.train.progress import Progress, show_plan
from stoker.train.tempo import Tempo

# Compiled loops by model: the next `fit` on data of the same shape compiles nothing.
_LOOPS: weakref.WeakKeyDictionary[Any, dict[Any, tuple[Any, Loop]]] = weakref.WeakKeyDictionary()


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
    wanted = parse(plan)
    _check(model, epochs)
    epochs = _capped(epochs)
    if validation_split and validation_data is None:
        (x, y, sample_weight), validation_data = arguments.split(x, y, sample_weight, validation_split)
    data = arguments.source(
        x,
        y,
        sample_weight,
        batch_size=batch_size,
        steps_per_epoch=steps_per_epoch,
        shuffle=shuffle,
        class_weight=class_weight,
    )
    program = KerasProgram(model)
    feed = data.feed(wanted.feed or "resident", seed=0)
    decided = wanted.because(feed=feed.kind, jit=wanted.jit or "none")
    pace = Pace(feed, data.steps_per_epoch, data.adapter)
    pace.reset()
    listed = hooks.callback_list(model, callbacks, verbose, epochs, pace.target, Progress())
    decided = tempo_for(listed, model, decided, hooks.TRAIN)
    model.stop_training = False
    listed.on_train_begin()
    loop = loop_of(model, program.train_step, feed, "train", decided.jit or "none", program.eager)
    training = Stretch(loop, pace, Tempo(decided.steps_per_call))
    validation = None
    if validation_data is not None:
        v_x, v_y, v_weight = arguments.validation_parts(validation_data)
        v_source = arguments.source(
            v_x,
            v_y,
            v_weight,
            batch_size=validation_batch_size or batch_size,
            steps_per_epoch=validation_steps,
        )
        v_feed = v_source.feed("resident", 0)
        v_pace = Pace(v_feed, v_source.steps_per_epoch, v_source.adapter)
        v_plan = tempo_for(listed, model, Plan(), hooks.TEST)
        v_loop = loop_of(model, program.test_step, v_feed, "test", "none", program.eager)
        validation = Validation(Stretch(v_loop, v_pace, Tempo(v_plan.steps_per_call)), validation_freq)
    if verbose:
        show_plan(decided)
    engine = Engine(
        program,
        training,
        listed,
        epochs=epochs,
        initial_epoch=initial_epoch,
        validation=validation,
        plan=decided,
    )
    return engine.train()


def loop_of(model: Any, step: Any, feed: Feed, kind: str, jit: str, eager: bool) -> Loop:
    """The loop for this step and feed; compiled before, if the model was not compiled anew since."""
    loops = _LOOPS.setdefault(model, {})
    key = (kind, jit, eager, feed.signature())
    # compile() makes a new loss tracker: what was traced before is out of date then.
    made = loops.get(key)
    if made is not None and made[0] is model._loss_tracker:
        made[1].feed = feed
        return made[1]
    loop = Loop(step, feed, jit=jit, eager=eager)
    loops[key] = (model._loss_tracker, loop)
    return loop


def _check(model: Any, epochs: int) -> None:
    if not isinstance(model, keras.Model):
        raise ArgumentError(f"fit trains a keras.Model, not {type(model).__name__}")
    if not model.compiled:
        raise ArgumentError(
            "the model is not compiled: call model.compile(optimizer, loss) before stoker.fit"
        )
    if not isinstance(epochs, int):
        raise ArgumentError(f"epochs={epochs!r} must be a whole number")
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
