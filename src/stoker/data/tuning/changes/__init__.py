"""The changes the tuner knows, one module each, in the order in which they are tried.

A module has `proposals(pipeline, request)`: it yields the pipelines that a change would make, and where a change was
not possible, why. Nothing here decides whether a change is worth it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from stoker.data.tuning.comparing import EXACT


@dataclass(frozen=True)
class Change:
    """A pipeline that may be better.

    Attributes:
        name: what was changed, in a few words.
        stage: the stage it concerns, as it was.
        pipeline: the whole pipeline with the change.
        pieces: the changed piece as it was and as it is, on the same input, to be compared element by element.
    """

    name: str
    stage: str
    pipeline: Any
    pieces: tuple[Any, Any] | None = None


@dataclass(frozen=True)
class Left:
    """A change that was not made, and why."""

    name: str
    stage: str
    why: str


@dataclass(frozen=True)
class Request:
    """What the user allows.

    Attributes:
        allow: "exact" or "last-place".
        memory: the bytes a cache may take.
        seconds: about how long one measurement may take.
    """

    memory: int
    allow: str = EXACT
    seconds: float = 0.1


class Module(Protocol):
    """What a module of a change offers."""

    NAME: str

    def proposals(self, pipeline: Any, request: Request) -> Iterator[Change | Left]:
        """The changes of its kind that the pipeline allows."""
