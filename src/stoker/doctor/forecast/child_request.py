"""A request to the program's process, in the form in which one process hands it to another."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

ENVIRONMENT = "STOKER_FORECAST"
# Exit codes that tell the other process that there is an answer, or why there is none.
ANSWERED, NO_STEP = 0, 86


@dataclass(frozen=True)
class BatchPlace:
    """Where a program sets the batch of its training.

    By `kind`: `dataset`, in calls of `Dataset.batch` and the like, whose numbers in order are `numbers`; `fit`, in
    `fit(batch_size=)`; `option`, on its command line; `name`, in a name at the top of its file.
    """

    kind: str
    rows: int | None = None
    numbers: tuple[int, ...] = ()
    name: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class ChildRequest:
    """Run a program until its first steps are done, or, without a `place`, until it is clear where its batch is set."""

    program: str
    arguments: list[str]
    is_module: bool
    user_root: str | None
    # The file for the answer.
    answer: str
    place: BatchPlace | None = None
    rows: int = 0
    # The name of a change of `changes.CHANGES`; empty for the program as it is.
    change: str = ""
    steps: int = 3
    memory_bytes: int = 0

    def to_json(self) -> str:
        """Return the request as text."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> ChildRequest:
        """Return the request that `to_json` wrote."""
        values = json.loads(text)
        if values["place"] is not None:
            values["place"] = place_from(values["place"])
        return ChildRequest(**values)


def place_from(values: dict[str, object]) -> BatchPlace:
    """Build a place from its fields in JSON."""
    return BatchPlace(**{**values, "numbers": tuple(values["numbers"])})  # type: ignore[arg-type]
