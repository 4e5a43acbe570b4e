"""How many elements a second a pipeline gives, and which of two gives more: timed in turn, the median of the rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from stoker.errors import ArgumentError

Step = Callable[[Any], object]
# One round decides where one pipeline is so many times as fast as the other.
BEYOND_DOUBT = 2.0
# So much faster is worth the work of more cores; less is not, if an element then takes more processor time.
_CLEAR, _NOT_DEARER = 1.3, 0.95
# Rounds of what is promised, in rounds of what is decided: one of the former says what to expect for hours.
_LONGER = 1.5


@dataclass(frozen=True)
class Rate:
    """Elements a second, by the clock and by the processor time of the process."""

    per_s: float
    per_cpu_s: float


@dataclass(frozen=True)
class Race:
    """Two pipelines timed in turn, round by round."""

    rounds: tuple[tuple[Rate, Rate], ...]

    @property
    def first(self) -> float | None:
        """The rate of the first in the middle of its rounds, by the clock."""
        return self._middle(lambda both: both[0].per_s)

    @property
    def second(self) -> float | None:
        """The rate of the second in the middle of its rounds, by the clock."""
        return self._middle(lambda both: both[1].per_s)

    @property
    def by_cpu(self) -> tuple[float | None, float | None]:
        """The rates of both by processor time, which other programs hardly change."""
        return self._middle(lambda both: both[0].per_cpu_s), self._middle(lambda both: both[1].per_cpu_s)

    def _middle(self, rate: Callable[[tuple[Rate, Rate]], float]) -> float | None:
        return statistics.median(map(rate, self.rounds)) if self.rounds else None

    def won(self, gain: float) -> bool:
        """Whether the second is this much faster, beyond what noise could make of it.

        Either beyond doubt; or in every round, by that much in the middle one, and not by keeping more cores busy.
        """
        ratios = [other.per_s / one.per_s for one, other in self.rounds]
        if not ratios or min(ratios) > BEYOND_DOUBT:
            return bool(ratios)
        work = statistics.median(other.per_cpu_s / one.per_cpu_s for one, other in self.rounds)
        middle = statistics.median(ratios)
        return middle >= gain and min(ratios) > 1 and (middle > _CLEAR or work > _NOT_DEARER)


@dataclass(frozen=True)
class Timing:
    """How long and how often to time.

    Attributes:
        seconds: of one round of one pipeline.
        rounds: of each of the two that are compared, in turn.
        gain: how much faster the new one must be to stay.
        step: what the consumer does with an element; None takes the next one at once.
    """

    seconds: float = 0.2
    rounds: int = 4
    gain: float = 1.05
    step: Step | None = None

    def rate(self, dataset: Any) -> Rate | None:
        """Of a pipeline, without its first element; None if there is not more than one."""
        running = _Running(dataset, self.step)
        running.first()
        return running.timed(self.seconds)

    def in_turn(self, first: Any, second: Any) -> Race:
        """Time two pipelines, begun anew in each round; no more rounds once one is beyond doubt."""
        rounds: list[tuple[Rate, Rate]] = []
        for _ in range(self.rounds):
            one, other = self.rate(first), self.rate(second)
            if one is None or other is None:
                break
            rounds.append((one, other))
            faster, slower = max(one.per_s, other.per_s), min(one.per_s, other.per_s)
            if faster > BEYOND_DOUBT * slower:
                break
        return Race(tuple(rounds))

    def steady(self, first: Any, second: Any) -> Race:
        """Time two pipelines that keep running, as in training: the rates that a program will see.

        Before the first round each runs for as long as a round: buffers are full then, and tf.data has set its
        parallelism.
        """
        both = _Running(first, self.step), _Running(second, self.step)
        for running in both:
            running.timed(self.seconds * _LONGER)
        rounds: list[tuple[Rate, Rate]] = []
        for _ in range(self.rounds):
            one, other = (running.timed(self.seconds * _LONGER) for running in both)
            if one is None or other is None:
                break
            rounds.append((one, other))
        return Race(tuple(rounds))


class _Running:
    """A pipeline that is being consumed."""

    def __init__(self, dataset: Any, step: Step | None) -> None:
        self._iterator, self._step = iter(endless(dataset)), step

    def first(self) -> None:
        """Take the first element, for which everything must be started."""
        for element in self._iterator:
            if self._step is not None:
                self._step(element)
            break

    def timed(self, seconds: float) -> Rate | None:
        """Consume it for so long; None if nothing is left."""
        count, elapsed = 0, 0.0
        begin, cpu = time.perf_counter(), time.process_time()
        for element in self._iterator:
            if self._step is not None:
                self._step(element)
            count += 1
            elapsed = time.perf_counter() - begin
            if elapsed >= seconds:
                break
        if not count:
            return None
        return Rate(count / elapsed, count / max(time.process_time() - cpu, 1e-9))


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
