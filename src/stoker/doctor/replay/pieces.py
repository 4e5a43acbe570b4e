"""A piece of work of the main thread, and sums over pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum

# A piece of these is Python's work, which has to wait for Python's lock. Of a save, walking through the objects is.
PYTHON = frozenset({"python", "dispatch", "launch", "eager", "transfer", "trace", "checkpoint"})

# The name of a piece that an experiment timed, when the program had ended: nothing ran beside it.
TIMED = "timed"

Site = tuple[str, int]


@dataclass(frozen=True)
class Piece:
    """What the main thread did for a while."""

    account: str
    seconds: float
    site: Site | None = None
    name: str = ""
    # The part of `seconds` in which it waited for the device.
    wait: float = 0.0
    # Seconds of work it handed to a device that runs beside it, and how long the device had work after it.
    device: float = 0.0
    tail: float = 0.0


def mean(values: Iterable[float]) -> float:
    """The mean of at least one value; `statistics` would take longer to import than all stalls."""
    known = list(values)
    return fsum(known) / len(known)


def mean_s(steps: Sequence[Sequence[Piece]], wanted: Callable[[Piece], bool]) -> float:
    """Seconds of a step, on average, in pieces of this sort."""
    return mean(sum(p.seconds for p in step if wanted(p)) for step in steps)


def is_loop_python(piece: Piece) -> bool:
    """Whether it is the Python of the loop itself, between all that has a name."""
    return piece.account == "python" and not piece.name


def python_s(steps: Sequence[Sequence[Piece]], eager_kernels: float) -> float:
    """Seconds of a step in which the host holds Python's lock: eager ops let go of it while their kernels run."""
    return mean(
        sum(
            p.seconds * (1 - eager_kernels if p.account == "eager" else 1.0)
            for p in step
            if p.account in PYTHON
        )
        for step in steps
    )
