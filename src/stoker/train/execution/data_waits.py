"""How long the steps of a call waited for their data: measured in graph, for the ledger of a job.

A batch is made while the step before it runs, so only what it takes longer than that step is a wait. The clock is read
twice beside each step: when it has ended, and when its data has arrived. That orders nothing: steps run as without.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from stoker.goodput import journal
from stoker.tf_internals.types import Nest, Tensor
from stoker.train.execution.feed import BatchFeed


class WaitClock(NamedTuple):
    """Seconds waited so far, and when the last step ended: carried from step to step."""

    waited: Tensor
    free_at: Tensor

    @classmethod
    def start(cls) -> WaitClock:
        """At the begin of a call."""
        return cls(tf.constant(0.0, tf.float64), tf.timestamp())

    def note_arrival(self, data: Nest) -> WaitClock:
        """The data of the next step is there."""
        late = _read_after(data) - self.free_at
        return WaitClock(self.waited + tf.maximum(late, 0.0), self.free_at)

    def note_step(self, outputs: Nest) -> WaitClock:
        """A step has given what it returns."""
        return WaitClock(self.waited, _read_after(outputs))


# Among a call's logs, for the loop alone.
WAITED = "stoker/waited"


def can_be_measured(feed: BatchFeed) -> bool:
    """Whether to measure: in a job that keeps a ledger, where the host knows when a step has ended."""
    return journal.is_kept() and feed.kind == "streamed" and not tf.config.list_physical_devices("GPU")


def add_waits(logs: Nest, waits: Nest) -> Nest:
    """A call's logs with the seconds waited, if there was a clock."""
    return {**logs, WAITED: waits.waited} if waits else logs


def shapes_of(waits: Nest) -> Nest:
    """The shapes of a clock, for a loop that carries it."""
    return tf.nest.map_structure(lambda one: one.shape, waits)


def _read_after(values: Nest) -> Tensor:
    with tf.control_dependencies(tf.nest.flatten(values, expand_composites=True)):
        return tf.timestamp()
