"""Steps, found by themselves: a Keras batch, a call that updates variables, an eager optimizer update, a tape.

Training counts before inference: only a program that never trains has its evaluation or prediction batches, or
its most-called function, taken for steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stoker.probes.recorder import Recorder
from stoker.probes.spans import SpanWindows

# How a source of steps ranks: the best class that has any steps is the one reported.
TRAINING, EAGER_TRAINING, TAPES, INFERENCE, CALLS = range(5)

# Single steps whose duration is kept; beyond, every other goes and every second, fourth ... step is kept.
MAX_TIMES = 512


@dataclass
class StepCount:
    """Steps from one source: where it is, how many, and from when to when."""

    rank: int
    source: object = None
    books: Steps | None = None
    steps: int = 0
    # A tick is one step, or the several that one call runs.
    ticks: int = 0
    # Steps of the first tick: their time was before `first_ns`.
    first_steps: int = 0
    examples: int = 0
    first_examples: int = 0
    first_ns: int = 0
    last_ns: int = 0
    # Nanoseconds of single steps, thinned: every `stride`-th.
    times: list[int] = field(default_factory=list)
    stride: int = 1
    # The recorder's totals at the end of the first step and of the last one.
    first_totals: list[int] = field(default_factory=list)
    last_totals: list[int] = field(default_factory=list)
    _since_kept: int = 0

    def tick(self, steps: int, examples: int, now: int) -> None:
        """`steps` steps over `examples` examples just ended."""
        books = self.books
        if not self.steps:
            self.first_ns, self.first_steps, self.first_examples = now, steps, examples
            if books is not None and books.recorder is not None:
                self.first_totals = list(books.recorder.totals)
        else:
            self._since_kept += 1
            if self._since_kept >= self.stride:
                self._since_kept = 0
                self.times.append((now - self.last_ns) // steps)
                if len(self.times) >= MAX_TIMES:
                    del self.times[::2]
                    self.stride *= 2
        self.steps += steps
        self.ticks += 1
        self.examples += examples
        self.last_ns = now
        if books is not None and books.recorder is not None:
            self.last_totals = list(books.recorder.totals)
            books.recorder.window = books.windows.step_ended(now, self.rank, steps, self.source)


@dataclass(frozen=True)
class Phase:
    """The stepping phase: from the end of the first step to the end of the last."""

    rank: int = -1
    ns: int = 0
    steps: int = 0
    totals: tuple[int, ...] = ()
    times: list[int] = field(default_factory=list)


class Steps:
    """All sources of steps of a run."""

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.recorder = recorder
        self.windows = SpanWindows()
        self.sources: dict[tuple[int, object], StepCount] = {}
        # Open calls of Keras' fit, evaluate and predict: what they call is not a step of its own.
        self.keras_depth = 0

    def source(self, rank: int, source: object) -> StepCount:
        """The count of one source, to be held by who ticks it often."""
        count = self.sources.get((rank, source))
        if count is None:
            count = self.sources[rank, source] = StepCount(rank, source, self)
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

    def phase(self) -> Phase:
        """The stepping phase of the reported steps, whichever of their sources they came from."""
        counts = [count for count in self.reported() if count.last_ns > count.first_ns]
        if not counts:
            return Phase()
        first, last = min(counts, key=lambda c: c.first_ns), max(counts, key=lambda c: c.last_ns)
        ends = zip(last.last_totals, first.first_totals, strict=False)
        return Phase(
            rank=first.rank,
            ns=last.last_ns - first.first_ns,
            steps=sum(count.steps for count in counts) - first.first_steps,
            totals=tuple(end - start for end, start in ends),
            times=list(max(counts, key=lambda c: c.steps).times),
        )

    def total(self) -> int:
        """Steps so far."""
        return sum(count.steps for count in self.reported())

    def tick_seconds(self) -> float | None:
        """How long a tick takes: what runs several steps in one call shows nothing of itself before it ends."""
        counts = self.reported()
        ticks = sum(count.ticks - 1 for count in counts)
        return sum(count.last_ns - count.first_ns for count in counts) / 1e9 / ticks if ticks > 0 else None

    def rates(self) -> tuple[float | None, float | None]:
        """Steps and examples a second, from the end of each source's first step to its last."""
        counts = self.reported()
        seconds = sum(count.last_ns - count.first_ns for count in counts) / 1e9
        if seconds <= 0:
            return None, None
        steps = sum(count.steps - count.first_steps for count in counts)
        examples = sum(count.examples - count.first_examples for count in counts)
        return steps / seconds, examples / seconds if examples else None
