"""How many elements a second a pipeline gives, and which of two gives more: timed in turn, the best of a few rounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from stoker.errors import ArgumentError

Step = Callable[[Any], object]


@dataclass(frozen=True)
class Timing:
    """How long and how often to time.

    Attributes:
        seconds: of one round of one pipeline.
        rounds: of each of the two that are compared, in turn.
        gain: how much faster the new one must be to stay.
        step: what the consumer does with an element; None takes the next one at once.
    """

    seconds: float = 0.25
    rounds: int = 3
    gain: float = 1.05
    step: Step | None = None

    def rate(self, dataset: Any) -> float | None:
        """Elements a second, without the first one; None if there is not more than one."""
        iterator = iter(endless(dataset))
        for element in iterator:
            if self.step is not None:
                self.step(element)
            break
        count, elapsed = 0, 0.0
        begin = time.perf_counter()
        for element in iterator:
            if self.step is not None:
                self.step(element)
            count += 1
            elapsed = time.perf_counter() - begin
            if elapsed >= self.seconds:
                break
        return count / elapsed if count else None

    def in_turn(
        self, first: Any, second: Any, decided: float | None = None
    ) -> tuple[float | None, float | None]:
        """The best rate of each; with `decided`, no more rounds once one is so many times as fast as the other."""
        rounds: list[tuple[float | None, float | None]] = []
        for _ in range(self.rounds):
            one, other = self.rate(first), self.rate(second)
            rounds.append((one, other))
            if not one or not other or (decided and max(one, other) > decided * min(one, other)):
                break
        return _best([one for one, _ in rounds]), _best([other for _, other in rounds])


def _best(rates: list[float | None]) -> float | None:
    return max((rate for rate in rates if rate is not None), default=None)


def endless(dataset: Any) -> Any:
    """The pipeline over and over, so that a short one can be timed for long enough."""
    if int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY:
        return dataset
    return dataset.repeat()


def consumer(step: Any) -> Step | None:
    """What takes the elements: a function of one, or how many a second are taken.

    Raises:
        ArgumentError: it is neither.
    """
    if step is None or callable(step):
        return step  # type: ignore[no-any-return]
    if isinstance(step, bool) or not isinstance(step, int | float) or step <= 0:
        raise ArgumentError(
            f"step={step!r} must be a function that takes one element, or how many elements a second are taken"
        )
    pause = 1 / step
    return lambda element: time.sleep(pause)


def step_rate(step: Step, dataset: Any, seconds: float) -> float | None:
    """How many elements a second the step takes, given the same one again and again; None without an element."""
    for element in dataset:
        # The first call may trace a function.
        step(element)
        count, begin = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - begin) < seconds or not count:
            step(element)
            count += 1
        return count / elapsed
    return None
