"""Everything the replay knows of a run: its steps, its input, and what its calls and kernels took."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from stoker.doctor.probes.pipelines import FIRST_ELEMENT
from stoker.doctor.replay.pieces import Piece

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
    # Steps of the stepping phase: what the run's sums are divided by; 0 for a program that has none.
    count: int = 0
    # The repairs that were timed, by the finding's kind, file and line.
    timed: Mapping[tuple[str, str, int], TimedRepair] = field(default_factory=dict)
    # Of a measured step, the part that the replay of the unchanged program did not give by itself.
    unexplained: float = 0.0

    def with_pieces(self, change: Callable[[Piece], Piece]) -> Program:
        """The program with each piece changed."""
        return self.with_steps(lambda step: [change(piece) for piece in step])

    def with_steps(self, change: Callable[[list[Piece]], list[Piece]]) -> Program:
        """The program with each step changed."""
        return replace(self, steps=[change(step) for step in self.steps])
