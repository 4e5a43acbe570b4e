"""Everything the replay knows about a run: its steps, its input, and the times of its calls and kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stoker.doctor.probes.pipelines import FIRST_ELEMENT
from stoker.doctor.replay.pieces import Piece

if TYPE_CHECKING:
    from stoker.records import FindingKey, VerifiedRow

# The name of a piece in which an iterator was made, found empty or deleted.
AROUND = "around the elements"


@dataclass(frozen=True)
class Source:
    """The input pipeline: how long an element takes to make, and whether it is made ahead of its use."""

    seconds: float
    # The number of elements made ahead. With none, the step waits while each one is made.
    ahead: int = 0
    # The number of threads at work at a time, and whether they hold Python's lock.
    threads: float = 1.0
    python: bool = False
    # The share of the time in which it was at work while it was measured.
    duty: float = 0.0
    # The slowest stage's share of the work on an element, and how often that stage is called for each element.
    slow_share: float = 1.0
    slow_calls: float = 1.0


@dataclass(frozen=True)
class TimedRepair:
    """The measured times of the repaired part of a step: seconds of each round, shortest first."""

    rounds: tuple[float, ...]
    # The share of the step's eager ops that was rebuilt.
    covers: float = 0.0
    # Seconds of single steps that the repair replaces, shortest first; empty if only samples are known.
    replaces: tuple[float, ...] = ()
    # Seconds of a step that may be replaced or may stay; this is unknown.
    unknown: float = 0.0
    # The findings, as `kind:line`, whose repairs replace everything that this one replaces.
    within: tuple[str, ...] = ()

    @property
    def replaced_s(self) -> float:
        """The median seconds of a step that the repair replaces; 0 if only samples are known."""
        return _find_quantile(self.replaces, 0.5)

    def takes_s(self, round_place: float, step_place: float) -> float:
        """Return the seconds that the repaired part takes in a step.

        The places choose a round and a step from the middle half of each, between the quickest (0) and the slowest
        (1), to exclude disturbed ones. If less of the chosen step is replaced, more of it stays.
        """
        seconds = _find_quantile(self.rounds, 0.25 + round_place / 2)
        more_stays = self.replaced_s - _find_quantile(self.replaces, 0.25 + step_place / 2)
        more_stays += self.unknown * max(0.0, 1 - 2 * step_place)
        return max(seconds / 2, seconds + more_stays)


def _find_quantile(values: Sequence[float], place: float) -> float:
    """Return the value at a place between the smallest (0) and the largest (1), or 0 if there are no values."""
    if not values:
        return 0.0
    position = place * (len(values) - 1)
    below = int(position)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (position - below)


def is_element(piece: Piece) -> bool:
    """Return whether a piece is the wait for an element other than an iterator's first."""
    return piece.account == "input" and piece.name not in (FIRST_ELEMENT, AROUND)


@dataclass(frozen=True)
class Program:
    """Everything the simulation knows about a run."""

    steps: list[list[Piece]]
    step_s: float
    asynchronous: bool
    cores: int
    kernel_threads: int
    # The input as it is now, and as it was while the pieces were measured alongside it.
    source: Source | None = None
    measured: Source | None = None
    # The share of eager time, inside ops and between them, that runs kernels, and the part that even empty ones take.
    eager_kernels: float = 0.0
    eager_floor: float = 0.0
    # The share of the eager kernels' time in kernels that already divide their work among all processors.
    eager_wide: float = 0.0
    # The seconds of the host's Python in a step, as they were while the input was measured.
    python_s: float = 0.0
    # The kernel time of the quickest compiled calls, as a share of the mean.
    quick: float = 1.0
    # The seconds of Python in one call of a compiled function.
    call_s: float = 0.0
    # The seconds to launch a step's eager ops on an accelerator, one by one, from inside a graph.
    launches_s: float = 0.0
    # The share of the run's seconds that would be left without other programs on the processors.
    undisturbed: float = 1.0
    # The number of steps in the stepping phase, by which the run's sums are divided; 0 if the program has none.
    count: int = 0
    # The repairs that were timed, by finding.
    timed: Mapping[FindingKey, TimedRepair] = field(default_factory=dict)
    # The measured gains of repaired programs.
    verified: Sequence[VerifiedRow] = ()
    # The part of a measured step that the replay of the unchanged program does not explain.
    unexplained: float = 0.0

    def with_pieces(self, change: Callable[[Piece], Piece]) -> Program:
        """Return the program with each piece changed."""
        return self.with_steps(lambda step: [change(piece) for piece in step])

    def with_steps(self, change: Callable[[list[Piece]], list[Piece]]) -> Program:
        """Return the program with each step changed."""
        return replace(self, steps=[change(step) for step in self.steps])
