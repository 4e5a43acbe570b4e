"""Measure how many elements per second a pipeline gives, and which of two is faster: timed in turn, by median round."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Dataset, Nest

Step = Callable[[Nest], object]
# One round decides if one pipeline is this many times as fast as the other.
BEYOND_DOUBT = 2.0
# A gain this clear is worth more processor time per element; a smaller one is not.
_CLEAR, _NOT_DEARER = 1.3, 0.95
# How much longer the rounds of the final measurement are, as it predicts the rate for hours.
_LONGER = 1.5


@dataclass(frozen=True)
class Rate:
    """Elements per second, by the clock and by the processor time of the process."""

    per_s: float
    per_cpu_s: float


@dataclass(frozen=True)
class Race:
    """The result of timing two pipelines in turn, round by round."""

    rounds: tuple[tuple[Rate, Rate], ...]

    @property
    def first(self) -> float | None:
        """The median rate of the first pipeline, by the clock."""
        return self._median(lambda both: both[0].per_s)

    @property
    def second(self) -> float | None:
        """The median rate of the second pipeline, by the clock."""
        return self._median(lambda both: both[1].per_s)

    @property
    def by_cpu(self) -> tuple[float | None, float | None]:
        """The median rates of both by processor time, which other programs hardly change."""
        return self._median(lambda both: both[0].per_cpu_s), self._median(lambda both: both[1].per_cpu_s)

    def _median(self, rate: Callable[[tuple[Rate, Rate]], float]) -> float | None:
        return statistics.median(map(rate, self.rounds)) if self.rounds else None

    def is_faster(self, gain: float) -> bool:
        """Return whether the second pipeline is this much faster, beyond noise.

        That means: it is faster beyond doubt, or it is faster in every round, by that much in the median, and not just
        by keeping more cores busy.
        """
        ratios = [other.per_s / one.per_s for one, other in self.rounds]
        if not ratios or min(ratios) > BEYOND_DOUBT:
            return bool(ratios)
        work = statistics.median(other.per_cpu_s / one.per_cpu_s for one, other in self.rounds)
        middle = statistics.median(ratios)
        return middle >= gain and min(ratios) > 1 and (middle > _CLEAR or work > _NOT_DEARER)


@dataclass(frozen=True)
class Timing:
    """Settings for timing a pipeline.

    Attributes:
        seconds: the seconds per round of one pipeline.
        rounds: how many times the two pipelines are timed in turn.
        gain: how much faster the new pipeline must be.
        step: what the consumer does with an element; None takes the next one at once.
    """

    seconds: float = 0.2
    rounds: int = 4
    gain: float = 1.05
    step: Step | None = None

    def rate(self, dataset: Dataset) -> Rate | None:
        """Return the rate of a pipeline after its first element; None if it has only one."""
        running = _Running(dataset, self.step)
        running.first()
        return running.measure(self.seconds)

    def race_in_turn(self, first: Dataset, second: Dataset) -> Race:
        """Time two pipelines, restarted in each round, until one is faster beyond doubt."""
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

    def race_steadily(self, first: Dataset, second: Dataset) -> Race:
        """Time two pipelines that keep running, as in training, to get the rates that a program will see.

        Each runs for one round before the first round that counts, so that its buffers are full and tf.data has chosen
        its parallelism.
        """
        both = _Running(first, self.step), _Running(second, self.step)
        for running in both:
            running.measure(self.seconds * _LONGER)
        rounds: list[tuple[Rate, Rate]] = []
        for _ in range(self.rounds):
            one, other = (running.measure(self.seconds * _LONGER) for running in both)
            if one is None or other is None:
                break
            rounds.append((one, other))
        return Race(tuple(rounds))


class _Running:
    """A pipeline in use."""

    def __init__(self, dataset: Dataset, step: Step | None) -> None:
        self._iterator, self._step = iter(repeat_endlessly(dataset)), step

    def first(self) -> None:
        """Take the first element, which pays for starting everything."""
        for element in self._iterator:
            if self._step is not None:
                self._step(element)
            break

    def measure(self, seconds: float) -> Rate | None:
        """Consume elements for this long and return the rate; None if none are left."""
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


def repeat_endlessly(dataset: Dataset) -> Dataset:
    """Repeat the pipeline endlessly, so that a short one can be timed long enough."""
    if int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY:
        return dataset
    return dataset.repeat()


def make_consumer(step: Step | float | None) -> Step | None:
    """Return the function that takes an element. If the caller gave a number of elements per second, make one.

    Raises:
        ArgumentError: the step is neither.
    """
    if step is None or callable(step):
        return step
    if isinstance(step, bool) or not isinstance(step, int | float) or step <= 0:
        raise ArgumentError(
            f"step={step!r} must be a function of one element, or a number of elements per second"
        )
    pause = 1 / step
    return lambda element: time.sleep(pause)


def step_rate(step: Step, dataset: Dataset, seconds: float) -> float | None:
    """Return how many elements per second the step takes, measured on the first element; None if there is none."""
    for element in dataset:
        # The first call may trace a function.
        step(element)
        count, begin = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - begin) < seconds or not count:
            step(element)
            count += 1
        return count / elapsed
    return None
