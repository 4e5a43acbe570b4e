"""Steps, found by themselves: a Keras batch, a call that updates variables, an eager optimizer update, a tape.

Training counts before inference: only a program that never trains has its evaluation or prediction batches, or
its most-called function, taken for steps.
"""

from __future__ import annotations

from dataclasses import dataclass

# How a source of steps ranks: the best class that has any steps is the one reported.
TRAINING, EAGER_TRAINING, TAPES, INFERENCE, CALLS = range(5)


@dataclass
class StepCount:
    """Steps from one source: where it is, how many, and from when to when."""

    rank: int
    steps: int = 0
    # Steps of the first tick: their time was before `first_ns`.
    first_steps: int = 0
    examples: int = 0
    first_examples: int = 0
    first_ns: int = 0
    last_ns: int = 0

    def tick(self, steps: int, examples: int, now: int) -> None:
        """`steps` steps over `examples` examples just ended."""
        if not self.steps:
            self.first_ns, self.first_steps, self.first_examples = now, steps, examples
        self.steps += steps
        self.examples += examples
        self.last_ns = now


class Steps:
    """All sources of steps of a run."""

    def __init__(self) -> None:
        self.sources: dict[tuple[int, object], StepCount] = {}
        # Open calls of Keras' fit, evaluate and predict: what they call is not a step of its own.
        self.keras_depth = 0

    def source(self, rank: int, source: object) -> StepCount:
        """The count of one source, to be held by who ticks it often."""
        count = self.sources.get((rank, source))
        if count is None:
            count = self.sources[rank, source] = StepCount(rank)
        return count

    def tick(self, rank: int, source: object, steps: int, examples: int, now: int) -> None:
        """`steps` steps over `examples` examples just ended."""
        self.source(rank, source).tick(steps, examples, now)

    def reported(self) -> list[StepCount]:
        """The counts of the best class that has any; of plain calls only the most frequent source."""
        counts = list(self.sources.values())
        if not counts:
            return []
        best = min(count.rank for count in counts)
        chosen = [count for count in counts if count.rank == best]
        return [max(chosen, key=lambda c: c.steps)] if best == CALLS else chosen

    def total(self) -> int:
        """Steps so far."""
        return sum(count.steps for count in self.reported())

    def rates(self) -> tuple[float | None, float | None]:
        """Steps and examples a second, from the end of each source's first step to its last."""
        counts = self.reported()
        seconds = sum(count.last_ns - count.first_ns for count in counts) / 1e9
        if seconds <= 0:
            return None, None
        steps = sum(count.steps - count.first_steps for count in counts)
        examples = sum(count.examples - count.first_examples for count in counts)
        return steps / seconds, examples / seconds if examples else None
