"""`stoker.fit` under a `ParameterServerStrategy`: workers take steps when they can, and no worker waits for another.

Training is asynchronous: other workers may have changed the weights since a gradient was computed, and no two runs end
alike. The coordinator cuts an epoch into stretches of some steps and hands each to a worker with its rows. The server
counts the finished steps of a stretch, so a worker that replaces a lost one continues where that one stopped. Every
stretch ends at its last step, and the count of steps is exact. (The step at which a worker was lost may have changed
the weights without being counted; then it is taken again.)
"""

from __future__ import annotations

import atexit
import weakref
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals import keras_training
from stoker.tf_internals.distribution import coordinator_cluster
from stoker.tf_internals.keras_data import array_shuffle
from stoker.tf_internals.keras_optimizers import clip
from stoker.tf_internals.types import Data, History, Model, Nest, Tensor
from stoker.train.execution import hooks, keras_step
from stoker.train.execution.feeding import sources
from stoker.train.execution.feeding.resident import map_leaves, order_of, row_count
from stoker.train.execution.own_methods import is_own
from stoker.train.loop.progress import ProgressBar
from stoker.train.planning.plan import parse
from stoker.train.request import FitRequest

# Handing over a stretch takes milliseconds. With 20 steps in a stretch, a step took a third of the time that it took
# with one.
_STEPS = 20


class ServedTraining:
    """One call of `fit` for a model whose weights are on parameter servers."""

    def __init__(self, model: Model, request: FitRequest) -> None:
        _check(model, request)
        self.model = model
        self.request = request
        self.strategy = model.distribute_strategy
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(self.strategy)
        _let_go_at_exit(self.coordinator)
        data = (request.x, request.y, request.sample_weight)
        self._held_out: Data = request.validation_data
        if request.validation_split and self._held_out is None:
            data, self._held_out = sources.split(*data, request.validation_split)
        self._rows, self._batch, self._shuffle = _rows_of(data, request)
        self._steps = parse(request.plan).steps_per_call or _STEPS
        self._stretches = -(-row_count(self._rows) // (self._batch * self._steps))
        with self.strategy.scope():
            keras_training.build(model, map_leaves(lambda leaf: leaf[:1], self._rows))
            # The number of steps done in each stretch, and the sums of the epoch's losses and rows.
            self._done = tf.Variable(tf.zeros([self._stretches], tf.int64), trainable=False)
            self._sums = tf.Variable(tf.zeros([2]), trainable=False)
        self._many = tf.function(self._many_steps, autograph=False, reduce_retracing=True)

    def train(self) -> History:
        """Run all epochs; return Keras' history, with the number of steps taken in `steps`."""
        request, model = self.request, self.model
        listed = hooks.list_training_callbacks(
            model, request.callbacks, request.verbose, request.epochs, self._stretches, ProgressBar()
        )
        model.stop_training = False
        steps, logs = 0, {}
        listed.on_train_begin()
        for epoch in range(request.initial_epoch, request.epochs):
            listed.on_epoch_begin(epoch)
            steps += self._epoch(epoch)
            total, rows = self._sums.numpy()
            logs = {"loss": float(total / rows)}
            if self._held_out is not None:
                logs["val_loss"] = self._evaluate()
            listed.on_epoch_end(epoch, logs)
            if model.stop_training:
                break
        listed.on_train_end(logs)
        model.history.steps = steps
        return model.history

    def _epoch(self, epoch: int) -> int:
        """Hand out all stretches and wait for them; return how many steps were taken."""
        count = row_count(self._rows)
        seed = int(self.model.optimizer.iterations.numpy())
        order = (
            order_of(count, self._batch, self._shuffle, seed, epoch) if self._shuffle else np.arange(count)
        )
        before = seed
        self._done.assign(tf.zeros_like(self._done))
        self._sums.assign([0.0, 0.0])
        size = self._batch * self._steps
        for number in range(self._stretches):
            chosen = order[number * size : (number + 1) * size]
            block = map_leaves(lambda leaf, chosen=chosen: tf.constant(leaf[chosen]), self._rows)
            self.coordinator.schedule(self._many, args=(tf.constant(number, tf.int64), block))
        self.coordinator.join()
        taken = int(self._done.numpy().sum())
        # Workers add to the count as they go, and may lose updates of it; this sets it right.
        self.model.optimizer.iterations.assign(before + taken)
        return taken

    def _many_steps(self, number: Tensor, block: Nest) -> None:
        """On a worker, take the steps of a stretch that no worker has taken yet."""
        rows = tf.shape(next(leaf for leaf in keras.tree.flatten(block) if leaf is not None))[0]
        count = tf.cast((rows + self._batch - 1) // self._batch, tf.int64)

        def step(done: Tensor) -> tuple[Tensor]:
            start = tf.cast(done, tf.int32) * self._batch
            self.strategy.run(
                self._step, args=(map_leaves(lambda leaf: leaf[start : start + self._batch], block),)
            )
            # The larger of the two counts: a late write from a lost worker changes nothing.
            tf.raw_ops.ResourceScatterMax(resource=self._done.handle, indices=[number], updates=[done + 1])
            return (done + 1,)

        tf.while_loop(lambda done: done < count, step, (self._done.sparse_read([number])[0],))

    def _step(self, batch: Nest) -> None:
        model, optimizer = self.model, self.model.optimizer
        with tf.GradientTape() as tape:
            loss, rows = self._loss(batch, training=True)
        gradients = tape.gradient(loss, [one.value for one in model.trainable_variables])
        rate = tf.cast(optimizer.learning_rate, tf.float32)
        pairs = [
            (slope, one)
            for slope, one in zip(gradients, model.trainable_variables, strict=True)
            if slope is not None
        ]
        clipped = clip(optimizer, [tf.convert_to_tensor(slope) for slope, _ in pairs])
        for slope, (_, variable) in zip(clipped, pairs, strict=True):
            optimizer.update_step(slope, variable, rate)
        # Keras' own count is a read and a write, and other workers come in between.
        optimizer.iterations.value.assign_add(1)
        self._sums.assign_add(tf.stack([loss * rows, rows]))

    def _loss(self, batch: Nest, *, training: bool) -> tuple[Tensor, Tensor]:
        loss, _ = keras_training.forward(self.model, batch, training=training)
        x, _, _ = keras.utils.unpack_x_y_sample_weight(batch)
        rows = tf.shape(next(leaf for leaf in keras.tree.flatten(x) if leaf is not None))[0]
        return loss, tf.cast(rows, tf.float32)

    def _evaluate(self) -> float:
        """Return the mean loss over the validation data, on the coordinator."""
        request = self.request
        size = request.validation_batch_size or self._batch
        x, y, weights = sources.validation_parts(self._held_out)
        source = sources.source(x, y, weights, batch_size=size, name="validation_data")
        if source.rows is None:
            raise ArgumentError("validation_data: give arrays; under parameter servers nothing else is read")
        total = rows = 0.0
        loss_of = tf.function(lambda batch: self._loss(batch, training=False), reduce_retracing=True)
        for start in range(0, row_count(source.rows), size):
            batch = map_leaves(lambda leaf, start=start: tf.constant(leaf[start : start + size]), source.rows)
            loss, count = loss_of(batch)
            total, rows = total + float(loss) * float(count), rows + float(count)
        return total / rows


_let_go: weakref.WeakSet[object] = weakref.WeakSet()


def _let_go_at_exit(coordinator: Any) -> None:
    """Make sure that the program can end even if one of its workers has gone.

    A thread of TensorFlow waits for that worker to return and holds a lock, and the coordinator's destructor wants that
    lock. At the end of the process there is nothing left to stop.
    """
    cluster = coordinator_cluster(coordinator)
    if cluster in _let_go:
        return
    _let_go.add(cluster)
    weak = weakref.ref(cluster)

    def leave() -> None:
        held = weak()
        if held is not None:
            held.stop = lambda: None

    atexit.register(leave)


def _rows_of(data: tuple[Data, Data, Data], request: FitRequest) -> tuple[Nest, int, bool | str]:
    source = sources.source(*data, batch_size=request.batch_size, shuffle=request.shuffle)
    if source.rows is None:
        raise ArgumentError(f"{source.why_streamed}: under parameter servers stoker.fit trains on arrays")
    rows = map_leaves(lambda leaf: np.asarray(leaf), source.rows)
    return rows, min(int(source.adapter.batch_size), row_count(rows)), array_shuffle(source.adapter)


def _check(model: Model, request: FitRequest) -> None:
    where = "under a ParameterServerStrategy"
    for option, asked in (
        ("checkpoint", request.checkpoint is not None),
        ("class_weight", request.class_weight is not None),
        ("steps_per_epoch", bool(request.steps_per_epoch)),
        ("tune", request.tune),
        ("divide", request.divide != "share"),
        ("data_service", request.data_service is not None),
        ("scale_rate", request.scale_rate is not False),
        ("memory", request.memory is not None),
    ):
        if asked:
            raise ArgumentError(f"{option}= is not supported {where}: leave it out, or use stoker.strategy()")
    own = [name for name in (*keras_step.STEPS, "reset_metrics", "evaluate") if is_own(model, name)]
    if own:
        raise ArgumentError(
            f"{type(model).__name__} has a method {own[0]} of its own, which stoker.fit cannot run {where}"
        )
    if keras_training.has_metrics(model):
        raise ArgumentError(
            f"the model was compiled with metrics, which lose counts {where}: leave them out of compile(), and look at "
            "the loss"
        )
    optimizer = model.optimizer
    plain = not (optimizer.use_ema or optimizer.gradient_accumulation_steps)
    if not plain or isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        raise ArgumentError(
            f"the optimizer's averages, accumulation or loss scale are not supported {where}: use a plain one"
        )
