"""Detects bad losses (NaN, infinity, spikes) inside the compiled loop, at the step where they happen.

From that step on nothing more is written: the weights are those of the last good step. At the end of the call the host
learns of it and decides to stop, or to restore an earlier checkpoint and continue differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Tensor, Variable
from stoker.train.update.options import require_positive, require_share


@dataclass(frozen=True)
class Spike:
    """The conditions under which a loss counts as a spike, and what to do about it.

    A spike is a loss that is not finite or, after the first `warmup` steps, one that exceeds its moving average by more
    than (factor - 1) times that average. The trainer restores the checkpoint before the spike, or an earlier one if the
    spike comes again at once. Then it multiplies the learning rate by `rate` (1 keeps it), and with `reorder` changes
    the order of the data. After `retries` recoveries the next spike stops training.
    """

    factor: float = 3.0
    warmup: int = 100
    memory: float = 0.98
    rate: float = 0.5
    reorder: bool = False
    retries: int = 3

    def __post_init__(self) -> None:
        require_share("Spike", memory=self.memory)
        require_positive("Spike", rate=self.rate, retries=self.retries)
        if self.factor <= 1 or self.rate > 1 or self.warmup < 0:
            raise ArgumentError(f"{self}: factor must be above 1, rate at most 1, warmup at least 0.")
        if self.rate == 1 and not self.reorder:
            raise ArgumentError(
                "Spike(rate=1, reorder=False) would run into the same spike again: change one of them."
            )


class Trouble(IntEnum):
    """The kind of a step's bad loss, or none.

    In graphs it is a float32: a GPU's integers live on the host, at the cost of a copy per step.
    """

    NONE = 0
    NOT_FINITE = 1
    SPIKE = 2
    GRADIENT = 3


class LossWatch:
    """The moving average of one loss, which tells whether the next loss lies far above it."""

    def __init__(self, spike: Spike | None) -> None:
        self._spike = spike
        self._mean = tf.Variable(0.0, trainable=False)
        self._seen = tf.Variable(0, trainable=False, dtype=tf.int64)

    @property
    def variables(self) -> dict[str, Variable]:
        return {} if self._spike is None else {"watch/mean": self._mean, "watch/seen": self._seen}

    def judge(self, loss: Tensor) -> Tensor:
        """Return what is wrong with the loss of this step."""
        found = tf.constant(Trouble.NONE, tf.float32)
        if self._spike is not None:
            known = self._seen >= max(self._spike.warmup, 1)
            jumped = loss - self._mean > (self._spike.factor - 1) * tf.abs(self._mean)
            found = tf.where(known & jumped, tf.constant(Trouble.SPIKE, tf.float32), found)
        return tf.where(tf.math.is_finite(loss), found, tf.constant(Trouble.NOT_FINITE, tf.float32))

    def learn(self, loss: Tensor, good: Tensor) -> None:
        """Update the average with the loss of a step, if the step was good."""
        if self._spike is None:
            return
        good &= tf.math.is_finite(loss)
        memory = tf.where(self._seen == 0, 0.0, self._spike.memory)
        self._mean.assign(tf.where(good, memory * self._mean + (1 - memory) * loss, self._mean))
        self._seen.assign(tf.where(good, self._seen + 1, self._seen))


class Halt:
    """The first step with a bad loss. From there on no step writes until the host has handled it."""

    def __init__(self) -> None:
        # Trouble, step and loss in one variable: a step writes them together, and the host reads them together.
        self._note = tf.Variable([0.0, 0.0, 0.0], trainable=False, dtype=tf.float64)

    @property
    def variables(self) -> dict[str, Variable]:
        return {"halt": self._note}

    @property
    def on(self) -> Tensor:
        return self._note[0] != Trouble.NONE

    def note(self, trouble: Tensor, step: Tensor, loss: Tensor) -> None:
        """Record a step's trouble, unless an earlier one is recorded."""
        new = tf.logical_not(self.on) & (trouble != Trouble.NONE)
        content = tf.stack([tf.cast(value, tf.float64) for value in (trouble, step, loss)])
        self._note.assign(tf.where(new, content, self._note))

    def read(self) -> tuple[Trouble, int, float]:
        """On the host, return what went wrong, at which step, with which loss."""
        trouble, step, loss = self._note.numpy()
        return Trouble(int(trouble)), int(step), float(loss)

    def clear(self) -> None:
        """On the host, let training continue."""
        self._note.assign([0.0, 0.0, 0.0])
