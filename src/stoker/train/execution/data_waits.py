"""Measure in the graph how long the steps of a call waited for their data, for the ledger of a job.

A batch is made while the previous step runs, so a step waits only if its batch takes longer than that. The clock is
read twice per step: when the step has ended, and when its data has arrived. These reads impose no order on the steps.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from stoker.goodput import journal
from stoker.tf_internals.types import Nest, Tensor
from stoker.train.execution.feed import BatchFeed


class WaitClock(NamedTuple):
    """The seconds waited so far, and when the last step ended: carried from step to step."""

    waited: Tensor
    free_at: Tensor

    @classmethod
    def start(cls) -> WaitClock:
        """Start the clock of a call."""
        return cls(tf.constant(0.0, tf.float64), tf.timestamp())

    def note_arrival(self, data: Nest) -> WaitClock:
        """Note that the data of the next step has arrived."""
        late = _read_after(data) - self.free_at
        return WaitClock(self.waited + tf.maximum(late, 0.0), self.free_at)

    def note_step(self, outputs: Nest) -> WaitClock:
        """Note that a step has returned."""
        return WaitClock(self.waited, _read_after(outputs))


# The key of the waits among a call's logs; only the loop uses it.
WAITED = "stoker/waited"


def can_be_measured(feed: BatchFeed) -> bool:
    """Return whether to measure waits: in a job that keeps a ledger, if the host knows when a step has ended."""
    return journal.is_kept() and feed.kind == "streamed" and not tf.config.list_physical_devices("GPU")


def add_waits(logs: Nest, waits: Nest) -> Nest:
    """Return a call's logs with the seconds waited, if there was a clock."""
    return {**logs, WAITED: waits.waited} if waits else logs


def shapes_of(waits: Nest) -> Nest:
    """Return the shapes of a clock, for a loop that carries it."""
    return tf.nest.map_structure(lambda one: one.shape, waits)


def _read_after(values: Nest) -> Tensor:
    with tf.control_dependencies(tf.nest.flatten(values, expand_composites=True)):
        return tf.timestamp()
