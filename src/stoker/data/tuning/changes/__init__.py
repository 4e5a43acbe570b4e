"""The changes that the tuner can make, one module for each.

Each module has `proposals(pipeline, request)`, which yields the pipelines with the change, and the reason if the change
is not possible. Nothing here decides whether a change is worth making.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from stoker.data.tuning.comparing import EXACT
from stoker.data.tuning.figures import LeftAlone
from stoker.tf_internals.types import Dataset


@dataclass(frozen=True)
class PipelineChange:
    """A pipeline that may be better.

    Attributes:
        name: what was changed, in a few words.
        stage: the stage before the change.
        pipeline: the whole pipeline with the change.
        pieces: the changed piece before and after, on the same input, to be compared element by element.
    """

    name: str
    stage: str
    pipeline: Dataset
    pieces: tuple[Dataset, Dataset] | None = None


Proposals: TypeAlias = Iterator[PipelineChange | LeftAlone]


@dataclass(frozen=True)
class TuningRequest:
    """The user's limits for changes to a pipeline.

    Attributes:
        allow: "exact" or "last-place".
        memory: how many bytes a cache may take.
    """

    memory: int
    allow: str = EXACT


class ChangeModule(Protocol):
    """The interface of a change's module."""

    NAME: str

    def proposals(self, pipeline: Dataset, request: TuningRequest) -> Proposals:
        """Yield the changes of its kind that the pipeline allows."""
