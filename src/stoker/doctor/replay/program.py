"""Everything the replay knows about a run: its steps, its input, and what its calls and kernels took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stoker.doctor.probes.pipelines import FIRST_ELEMENT
from stoker.doctor.replay.pieces import Piece

if TYPE_CHECKING:
    from stoker.records import VerifiedRow

# The name of a piece in which an iterator was made, found empty or taken down.
AROUND = "around the elements"


@dataclass(frozen=True)
class Source:
    """The input pipeline: what an element takes to make, and whether it is made ahead of its use."""

    seconds: float
    # Elements made before they are asked for; with none, making one is waiting for it.
    ahead: int = 0
    # Threads at work at a time, and whether they hold Python's lock.
    threads: float = 1.0
    python: bool = False
    # The share of the time it was at work, while it was measured.
    duty: float = 0.0
    # Of the work on an element, the part of the slowest stage, and how often that stage is called for one.
    slow_share: float = 1.0
    slow_calls: float = 1.0


@dataclass(frozen=True)
class TimedRepair:
    """What the repaired part of a step was timed to take: seconds of each round, shortest first."""

    rounds: tuple[float, ...]
    # Of the eager ops of the step, the share that was rebuilt.
    covers: float = 0.0
    # What it replaces: seconds of single steps, shortest first; nothing where only samples tell.
    replaces: tuple[float, ...] = ()
    # Seconds of a step that may be replaced or may stay: nothing tells.
    unknown: float = 0.0
    # The findings, as `kind:line`, whose repairs replace all that this one does.
    within: tuple[str, ...] = ()

    @property
    def replaced_s(self) -> float:
        """Seconds of a step that it replaces; 0 if only samples are known."""
        return _find_quantile(self.replaces, 0.5)

    def takes_s(self, round_place: float, step_place: float) -> float:
        """Seconds of a step with the repair, in place of what it replaces.

        The places choose a round and a step, from the quickest (0) to the slowest (1) of their middle half: one that
        was disturbed tells nothing. If a step has less that is replaced, more of it stays.
        """
        seconds = _find_quantile(self.rounds, 0.25 + round_place / 2)
        more_stays = self.replaced_s - _find_quantile(self.replaces, 0.25 + step_place / 2)
        more_stays += self.unknown * max(0.0, 1 - 2 * step_place)
        return max(seconds / 2, seconds + more_stays)


def _find_quantile(values: Sequence[float], place: float) -> float:
    """The value at a place between the smallest (0) and the largest (1); 0 of none."""
    if not values:
        return 0.0
    position = place * (len(values) - 1)
    below = int(position)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (position - below)


def is_element(piece: Piece) -> bool:
    """Whether a piece is the wait for an element of an iterator at work."""
    return piece.account == "input" and piece.name not in (FIRST_ELEMENT, AROUND)


@dataclass(frozen=True)
class Program:
    """Everything the simulation knows."""

    steps: list[list[Piece]]
    step_s: float
    asynchronous: bool
    cores: int
    kernel_threads: int
    # The input as it is, and as it was while the pieces were measured beside it.
    source: Source | None = None
    measured: Source | None = None
    # Of the time inside eager ops and between them: running kernels, and the part of it any kernel takes.
    eager_kernels: float = 0.0
    eager_floor: float = 0.0
    # The share of the eager kernels' time in those that divide their work among all processors by themselves.
    eager_wide: float = 0.0
    # The host's Python in a step, as it was while the input was measured beside it.
    python_s: float = 0.0
    # Of the time kernels took in a compiled call: what the quickest calls took.
    quick: float = 1.0
    # The Python of one call of a compiled function.
    call_s: float = 0.0
    # What a step's eager ops take to launch on an accelerator, one by one, from inside a graph.
    launches_s: float = 0.0
    # What is left of the run's seconds without other programs on the processors.
    undisturbed: float = 1.0
    # Steps of the stepping phase: what the run's sums are divided by; 0 for a program that has none.
    count: int = 0
    # The repairs that were timed, by the finding's kind, file and line.
    timed: Mapping[tuple[str, str, int], TimedRepair] = field(default_factory=dict)
    # What repaired programs gained.
    verified: Sequence[VerifiedRow] = ()
    # Of a measured step, the part that the replay of the unchanged program did not give by itself.
    unexplained: float = 0.0

    def with_pieces(self, change: Callable[[Piece], Piece]) -> Program:
        """The program with each piece changed."""
        return self.with_steps(lambda step: [change(piece) for piece in step])

    def with_steps(self, change: Callable[[list[Piece]], list[Piece]]) -> Program:
        """The program with each step changed."""
        return replace(self, steps=[change(step) for step in self.steps])
