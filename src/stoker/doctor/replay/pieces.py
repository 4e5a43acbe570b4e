"""A piece of work of the main thread, and sums over pieces."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum

# Accounts of work in Python, which must wait for Python's lock. In a save, this is the walk through the objects.
PYTHON = frozenset({"python", "dispatch", "launch", "eager", "transfer", "trace", "checkpoint"})

# The name of a piece that an experiment timed after the program had ended, with nothing running beside it.
TIMED = "timed"

Site = tuple[str, int]


@dataclass(frozen=True)
class Piece:
    """A period of the main thread's time, spent on one kind of work."""

    account: str
    seconds: float
    site: Site | None = None
    name: str = ""
    # The part of `seconds` in which the thread waited for the device.
    wait: float = 0.0
    # Seconds of work that the piece queues on an asynchronous device, and how long after it the device stays busy.
    device: float = 0.0
    tail: float = 0.0


def mean(values: Iterable[float]) -> float:
    """Return the mean of at least one value. Importing `statistics` would take longer than importing all stalls."""
    known = list(values)
    return fsum(known) / len(known)


def mean_s(steps: Sequence[Sequence[Piece]], wanted: Callable[[Piece], bool]) -> float:
    """Return the mean seconds of a step in the wanted pieces."""
    return mean(sum(p.seconds for p in step if wanted(p)) for step in steps)


def is_loop_python(piece: Piece) -> bool:
    """Return whether a piece is the Python of the loop itself, outside everything that has a name."""
    return piece.account == "python" and not piece.name


def python_s(steps: Sequence[Sequence[Piece]], eager_kernels: float) -> float:
    """Return the seconds of a step in which the host holds Python's lock. Eager ops release it while kernels run."""
    return mean(
        sum(
            p.seconds * (1 - eager_kernels if p.account == "eager" else 1.0)
            for p in step
            if p.account in PYTHON
        )
        for step in steps
    )


def join_alike(
    pieces: Iterable[Piece], is_border: Callable[[Piece], bool], apart: Container[str]
) -> list[Piece]:
    """Return the pieces with those of one account, site and name joined: not across a border, nor on these accounts."""
    joined: list[Piece] = []
    places: dict[tuple[str, Site | None, str], int] = {}
    for piece in pieces:
        if is_border(piece):
            places.clear()
        elif piece.account not in apart:
            place = places.setdefault((piece.account, piece.site, piece.name), len(joined))
            if place < len(joined):
                joined[place] = _join(joined[place], piece)
                continue
        joined.append(piece)
    return joined


def _join(first: Piece, second: Piece) -> Piece:
    return replace(
        first,
        seconds=first.seconds + second.seconds,
        wait=first.wait + second.wait,
        device=first.device + second.device,
        tail=first.tail + second.tail,
    )
