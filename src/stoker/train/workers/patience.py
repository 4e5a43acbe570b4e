"""Limit how long a worker waits for the others: too long a wait is an error, since they may wait for something else.

TensorFlow has its own timeout for collectives, `CommunicationOptions(timeout_seconds=)`. It holds two threads for every
collective until the time is over, even if the collective is long done, so a job with many steps a second runs out of
threads within a minute. Here one thread watches the only wait there is, and ends it.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from stoker.tf_internals.distribution import abort_collectives
from stoker.tf_internals.types import Strategy

DEFAULT_S = 600.0
# A call may take this many times as long as its steps took last.
_SLOWER = 10.0

_asked: weakref.WeakKeyDictionary[Strategy, float] = weakref.WeakKeyDictionary()


def ask(strategy: Strategy, seconds: float) -> None:
    """Set how long the workers of this strategy wait for each other."""
    _asked[strategy] = seconds


class Patience:
    """The limit on how long one worker of a job waits for the others."""

    def __init__(self, strategy: Strategy) -> None:
        self.seconds = _asked.get(strategy, DEFAULT_S)
        self._changed = threading.Condition()
        self._deadline = self._looks_at = math.inf
        self._thread: threading.Thread | None = None

    @contextmanager
    def watch_agreement(self) -> Iterator[None]:
        """Limit the wait for the other workers within the block."""
        with self._set_deadline(self.seconds):
            yield

    @contextmanager
    def watch_call(self, steps: int, step_s: float | None) -> Iterator[None]:
        """Limit a call of some steps within the block; `step_s` is how long the last step took, if known."""
        each = self.seconds if step_s is None else _SLOWER * step_s
        with self._set_deadline(self.seconds + steps * each):
            yield

    @contextmanager
    def _set_deadline(self, seconds: float) -> Iterator[None]:
        with self._changed:
            self._deadline = time.monotonic() + seconds
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="stoker-patience", daemon=True)
                self._thread.start()
            # The thread is not woken for waits that end before it looks again, which is nearly all of them.
            if self._deadline < self._looks_at:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._deadline = math.inf

    def _watch(self) -> None:
        with self._changed:
            while self._deadline > time.monotonic():
                self._looks_at = self._deadline
                self._changed.wait(None if math.isinf(self._looks_at) else self._looks_at - time.monotonic())
        abort_collectives(
            tf.errors.DEADLINE_EXCEEDED,
            "stoker: the other workers did not arrive in time: they wait for something else, or hang "
            "(stoker.strategy(timeout=) says how long a worker waits)",
        )
