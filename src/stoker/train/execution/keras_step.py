"""A Keras model's own steps as steps of a loop, and their logs."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import nullcontext

import keras

from stoker.tf_internals import keras_training
from stoker.tf_internals.keras_training import TensorFlowTrainer, Trainer
from stoker.tf_internals.types import Model, Nest, Strategy
from stoker.train.execution import fused_parts, fused_update
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.kept import traces_of
from stoker.train.execution.loop import CompiledLoop, Logs, numbers
from stoker.train.execution.parted_step import parted_step
from stoker.train.execution.parts import PartSize

# The methods that a step calls. If they are Keras' own, the step returns the results of the model's metrics and nothing
# else.
_THEIRS = {
    "train_step": TensorFlowTrainer,
    "test_step": TensorFlowTrainer,
    "compute_metrics": Trainer,
    "get_metrics_result": Trainer,
}


STEPS = tuple(_THEIRS)


def keras_loop(
    model: Model,
    kind: str,
    feed: BatchFeed,
    jit: str,
    *,
    eager: bool,
    fused: bool,
    size: PartSize | None,
) -> CompiledLoop:
    """Return the kept loop of the model's "train_step" or "test_step" over a feed: one loop for `fit` and `evaluate`.

    With a `size`, training steps are in parts, and XLA compiles each part.
    """
    testing = kind == "test_step"
    size = None if testing else size

    def make() -> CompiledLoop:
        strategy = keras_training.strategy_of(model)
        if strategy is not None:
            # Before tracing, as Keras does it: a step on a replica cannot make variables.
            with strategy.scope():
                keras_training.build(model, feed.spec())
        elif size is not None:
            keras_training.build(model, feed.spec())
        elif not testing:
            _build_loss_scale(model, feed)
        step = bind_weakly(model, kind) if testing else make_train_step(model, jit, fused, size)
        if strategy is not None:
            return CompiledLoop(_run_on_replica(step, strategy), feed, eager=eager)
        # The steps of a test need not compute results that nobody reads.
        results = bind_weakly(model, "get_metrics_result") if testing and returns_metrics(model) else None
        whole = jit if size is None or jit == "update" else "none"
        return CompiledLoop(step, feed, jit=whole, eager=eager, results=results)

    owner = None if testing else model.optimizer
    if size is not None:
        # A different step, so that `share` keeps it apart.
        kind = f"{kind} in parts, {'compiled' if jit in ('loop', 'step') else 'plain'}"
    return traces_of(model).loop(
        kind, feed, make, jit="eager" if eager else jit, owner=owner, fused=fused and not testing
    )


def _build_loss_scale(model: Model, feed: BatchFeed) -> None:
    """Build a `LossScaleOptimizer` before tracing; otherwise the graph would hold its first scale as a constant."""
    optimizer = model.optimizer
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer) and not optimizer.built:
        keras_training.build(model, feed.spec())


def _run_on_replica(step: Callable[..., Logs], strategy: Strategy) -> Callable[..., Logs]:
    """Return the step as a strategy of one replica runs it."""

    def run(batch: Nest) -> Logs:
        logs: Logs = strategy.run(step, args=(batch,))
        return logs

    return run


def make_train_step(model: Model, jit: str, fused: bool, size: PartSize | None = None) -> Callable[..., Logs]:
    """Return the model's `train_step`, with the update compiled by XLA or pieces fused; with a `size`, in parts."""
    plain, weak = bind_weakly(model, "train_step"), weakref.ref(model)

    def step(*args: Nest) -> Logs:
        owner = weak()
        assert owner is not None
        with (
            fused_update.compile_update(owner.optimizer) if jit == "update" else nullcontext(),
            fused_parts.fuse_parts(owner) if fused else nullcontext(),
        ):
            if size is not None:
                (batch,) = args
                return parted_step(owner, batch, size, compiled=jit in ("loop", "step"))
            return plain(*args)

    return step


def bind_weakly(model: Model, name: str) -> Callable[..., Logs]:
    """Return a method of the model that does not keep the model alive: loops are kept for the model's next run."""
    weak = weakref.ref(model)

    def method(*args: Nest) -> Logs:
        logs: Logs = getattr(weak(), name)(*args)
        return logs

    return method


def returns_metrics(model: Model) -> bool:
    """Return whether the model's steps are Keras' own, which return the results of its metrics."""
    return all(is_keras(model, name) for name in STEPS)


def is_keras(model: Model, name: str) -> bool:
    """Return whether one of `STEPS` is Keras' own."""
    return getattr(type(model), name) is getattr(_THEIRS[name], name) and name not in vars(model)


def results(model: Model, logs: Logs) -> Logs:
    """Return the logs of an epoch or an evaluation, given those of the last step."""
    # Keras' own step returns the results of the metrics, so there is no need to ask for them again.
    if logs and returns_metrics(model):
        return logs
    return numbers(keras_training.results(model, logs))
