"""The ways to train that `benchmarks/fit.py` compares: each runs epochs and says how long each took."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from fit_cases import Case

import stoker

Epochs = Callable[[int], list[float]]
plans: list[Any] = []  # how stoker.fit ran, call by call
STEPS_PER_EXECUTION = (8, 64)


# What every `fit` is asked for: a training long enough that compiling pays. The clock ends it sooner.
EPOCHS = 1000


class EpochClock(keras.callbacks.Callback):
    """When each epoch ended, and the end after some. No hook on batches: nothing is slowed down by it."""

    def __init__(self, epochs: int) -> None:
        super().__init__()
        self.epochs = epochs
        self.ends: list[float] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.ends.append(time.perf_counter())
        self.model.stop_training = len(self.ends) == self.epochs

    def durations(self) -> list[float]:
        return [end - begin for begin, end in zip(self.ends, self.ends[1:], strict=False)]


def by_fit(fit: Callable[..., Any], model: Any, case: Case, data: Any, **options: Any) -> Epochs:
    """A `fit`: one epoch more than asked for, since the first one pays for the start of the call."""
    x, y = (data, None) if isinstance(data, tf.data.Dataset) else data
    if y is not None:
        options |= {"y": y, "batch_size": case.batch}

    def run(epochs: int) -> list[float]:
        clock = EpochClock(epochs + 1)
        history = fit(model, x, epochs=EPOCHS, verbose=0, callbacks=[clock], **options)
        if fit is stoker.fit:
            plans.append(history.plan)
        return clock.durations()

    return run


def keras_fit(case: Case, data: Any) -> Epochs:
    return by_fit(lambda model, *args, **options: model.fit(*args, **options), case.model(), case, data)


def keras_fit_with_steps(case: Case, data: Any) -> Epochs:
    """`steps_per_execution`, the best of a few."""
    best: tuple[float, Epochs] | None = None
    for steps in dict.fromkeys([*(n for n in STEPS_PER_EXECUTION if n < case.steps), case.steps]):
        model = case.model()
        model.compile(model.optimizer, model.loss, steps_per_execution=steps)
        run = by_fit(lambda model, *args, **options: model.fit(*args, **options), model, case, data)
        run(1)
        took = min(run(2))
        if best is None or took < best[0]:
            best = took, run
    assert best is not None
    return best[1]


def stoker_fit(case: Case, data: Any) -> Epochs:
    options = {} if case.plan is None else {"plan": case.plan}
    return by_fit(stoker.fit, case.model(), case, data, **options)


def pipeline(case: Case, data: Any) -> tf.data.Dataset:
    if isinstance(data, tf.data.Dataset):
        return data
    whole = tf.data.Dataset.from_tensor_slices(data)
    return whole.shuffle(len(data[0])).batch(case.batch).prefetch(tf.data.AUTOTUNE)


def train_step(model: Any) -> Callable[[Any, Any], Any]:
    """What people write: forward, gradients, apply."""
    loss_of = keras.losses.get(model.loss)
    variables = model.trainable_variables
    model.optimizer.build(variables)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(loss_of(y, model(x, training=True)))
        model.optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return step


def timed(epoch: Callable[[], Any]) -> Epochs:
    def run(epochs: int) -> list[float]:
        took = []
        for _ in range(epochs):
            started = time.perf_counter()
            float(epoch())
            took.append(time.perf_counter() - started)
        return took

    return run


def function_per_step(case: Case, data: Any) -> Epochs:
    """A `tf.function` called from a Python loop over tf.data; the loss is read once an epoch."""
    batches = pipeline(case, data)
    step = tf.function(train_step(case.model()), reduce_retracing=True)

    def epoch() -> Any:
        for x, y in batches:
            loss = step(x, y)
        return loss

    return timed(epoch)


def function_per_epoch(case: Case, data: Any) -> Epochs:
    """The loop over a tf.data iterator inside the `tf.function`."""
    batches = iter(pipeline(case, data).repeat())
    step = train_step(case.model())

    @tf.function
    def epoch(iterator: Any) -> Any:
        loss = tf.constant(0.0)
        for _ in tf.range(case.steps):
            x, y = next(iterator)
            loss = step(x, y)
        return loss

    return timed(lambda: epoch(batches))


def limit(case: Case, data: Any) -> Epochs:
    """An epoch in one compiled loop over resident data: gather and step. The better with or without XLA."""
    runs = [resident_loop(case, data, xla) for xla in (True, False)]
    for run in runs:
        run(1)
    return min(runs, key=lambda run: min(run(2)))


def resident_loop(case: Case, data: Any, xla: bool) -> Epochs:
    x, y = (tf.constant(part) for part in data)
    step = train_step(case.model())
    count, full = len(data[0]), len(data[0]) // case.batch

    @tf.function(jit_compile=xla)
    def full_batches(order: Any) -> Any:
        def body(index: Any, _: Any) -> Any:
            rows = tf.slice(order, [index * case.batch], [case.batch])
            return index + 1, step(tf.gather(x, rows), tf.gather(y, rows))

        return tf.while_loop(lambda index, _: index < full, body, (0, tf.constant(0.0)))[1]

    @tf.function(jit_compile=xla)
    def tail(order: Any) -> Any:
        rows = order[full * case.batch :]
        return step(tf.gather(x, rows), tf.gather(y, rows))

    def epoch() -> Any:
        order = tf.random.shuffle(tf.range(count))
        loss = full_batches(order)
        return tail(order) if count % case.batch else loss

    return timed(epoch)


PEERS = {
    "Keras fit": keras_fit,
    "Keras fit, steps_per_execution": keras_fit_with_steps,
    "tf.function a step": function_per_step,
    "tf.function an epoch": function_per_epoch,
}
