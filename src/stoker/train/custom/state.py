"""What a trainer keeps while it trains: everything but the models and the optimizers, in variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import keras
import tensorflow as tf

from stoker.tf_internals.types import LogValue, Model, Optimizer, Tensor, Variable
from stoker.train.custom.parts import Options, build_parts
from stoker.train.update.balancing import Balancing
from stoker.train.update.means import Means
from stoker.train.update.replicas import Replicas
from stoker.train.update.watching import Halt, Trouble


class UpdateState:
    """The parts with their updates, the balancing of losses, the means of the epoch, and what went wrong."""

    def __init__(
        self,
        models: Mapping[str, Model],
        optimizers: Mapping[str, Optimizer],
        options: Options,
        replicas: Replicas,
        *,
        loss_names: Sequence[str],
        log_names: Iterable[str],
    ) -> None:
        """loss_names: of a step that leaves the update to the trainer; empty for one that has full control."""
        self.halt = Halt()
        self._watched = options.watched
        # A factor on all rates, lowered after spikes.
        self.slowdown = tf.Variable(1.0, trainable=False)
        self.steps = tf.Variable(0, trainable=False, dtype=tf.int64)
        with replicas.scope():
            self.balancing = Balancing(options.losses, loss_names)
        trained = {"model": self.balancing.trainable_variables} if loss_names else {}
        self.parts = build_parts(models, optimizers, trained, options, self.slowdown, replicas)
        self._flush = tf.function(self._flush_all, autograph=False)
        self.means = Means(dict.fromkeys([*log_names, *self.balancing.shown_names()]))

    @property
    def variables(self) -> dict[str, Variable]:
        """For checkpoints, by names that do not depend on the process."""
        found = {
            "slowdown": self.slowdown,
            "steps": self.steps,
            **self.balancing.variables,
            **self.halt.variables,
        }
        found.update(self.means.variables)
        for part in self.parts.values():
            found.update(part.state)
        return found

    def flush(self) -> None:
        """On the host: write what accumulation still holds, in one compiled call."""
        if any(part.update.accumulation is not None for part in self.parts.values()):
            self._flush()

    def _flush_all(self) -> None:
        for part in self.parts.values():
            part.update.flush()

    def account(
        self, logs: Mapping[str, LogValue], made: Sequence[Mapping[str, Tensor]], rows: Tensor
    ) -> dict[str, Tensor]:
        """In graph, after a step: what its updates came to, and the means so far."""
        step = tf.identity(self.steps)
        going: Tensor = tf.constant(True)
        counted: Tensor = True
        if self._watched:
            going = tf.logical_not(self.halt.on)
            for update in made:
                for name, (loss, trouble) in update.items():
                    self.parts[name].watch.learn(loss, going & (trouble == Trouble.NONE))
                    self.halt.note(trouble, step, loss)
            counted = tf.logical_not(self.halt.on)
        if any(part.update.scaler is not None for part in self.parts.values()):
            # A step that overflowed made no update: its loss says nothing.
            counted &= tf.reduce_all([tf.math.is_finite(value) for value in logs.values()])
        self.steps.assign(step + tf.cast(going, tf.int64))
        return self.means.add(logs, rows, counted, self.halt.on if self._watched else None)


def results_of(metrics: Sequence[keras.metrics.Metric]) -> dict[str, Tensor]:
    return {metric.name: metric.result() for metric in metrics}
