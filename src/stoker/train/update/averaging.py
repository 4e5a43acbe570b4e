"""The exponential moving average of the weights, updated whenever the weights are.

trainer = stoker.Trainer(..., ema=0.999)
with trainer.averaged_weights():
    model.export(...)                      # the averaged weights are in the model here, and only here
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf

from stoker.tf_internals.types import Variable
from stoker.train.update.options import require_share
from stoker.train.update.replicas import Replicas


@dataclass(frozen=True)
class EMA:
    """average = decay * average + (1 - decay) * weight.

    warmup: start with a short memory, decay = min(decay, (1 + n) / (10 + n)) after n updates, so that the average
    soon forgets the random initial weights.
    """

    decay: float = 0.999
    warmup: bool = False

    def __post_init__(self) -> None:
        require_share("EMA", decay=self.decay)


class Averages:
    """The averages of the trainable weights."""

    def __init__(self, options: EMA, variables: Sequence[Variable], replicas: Replicas) -> None:
        self._options = options
        self._replicas = replicas
        self._weights = [variable.value for variable in variables]
        self._averages = [tf.Variable(replicas.first(weight), trainable=False) for weight in self._weights]
        self._updates = tf.Variable(0, trainable=False, dtype=tf.int64)

    @property
    def variables(self) -> dict[str, Variable]:
        averages = {f"ema/{number}": average for number, average in enumerate(self._averages)}
        return {**averages, "ema/updates": self._updates}

    def update(self) -> None:
        """Update the averages with the current weights."""
        decay = tf.constant(self._options.decay)
        if self._options.warmup:
            made = tf.cast(self._updates, tf.float32)
            decay = tf.minimum(decay, (1 + made) / (10 + made))
        for weight, average in zip(self._weights, self._averages, strict=True):
            distance = tf.convert_to_tensor(self._replicas.first(weight)) - average
            average.assign_add(tf.cast(1 - decay, average.dtype) * distance)
        self._updates.assign_add(1)

    def swap(self) -> None:
        """Exchange weights and averages: the second call puts everything back, bit for bit."""
        for weight, average in zip(self._weights, self._averages, strict=True):
            kept = tf.identity(self._replicas.first(weight))
            weight.assign(tf.identity(average))
            average.assign(kept)
