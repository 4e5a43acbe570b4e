"""Send the recorded requests to a new bundle: what changed, by how much, on which rows."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from stoker.errors import ArgumentError
from stoker.serve.predictor import Predictor
from stoker.serve.rollout.changes import TOLERANCE, AnswerChanges, compare_answers, read_answers
from stoker.serve.rollout.evidence import AgreementTest
from stoker.serve.rollout.recordings import RecordedRequest
from stoker.serve.signature import Array

# The most changed rows that are kept to be shown.
MOST_SHOWN: Final = 10
# The most distances that are kept for the quantiles; of more, only a part is kept.
_MOST_DISTANCES = 1 << 20


@dataclass(frozen=True)
class ChangedRow:
    """A row that changed.

    Attributes:
        file, line, row: where it is recorded; `line` and `row` count from 1.
        distance: how far off its worst number is.
        inputs, before, after: its values by name.
    """

    file: str
    line: int
    row: int
    distance: float
    inputs: dict[str, object]
    before: dict[str, object]
    after: dict[str, object]


@dataclass
class OutputSummary:
    """The changes of an output over all rows.

    Attributes:
        rows: how many rows were compared.
        changed: how many of them changed.
        distances: how far off the worst number of each row is; empty for texts.
    """

    rows: int = 0
    changed: int = 0
    distances: list[float] = field(default_factory=list)

    def distance(self, quantile: float) -> float | None:
        """Return the distance that this share of the rows does not exceed; None for texts."""
        return float(np.quantile(self.distances, quantile, method="lower")) if self.distances else None

    def mean_distance(self) -> float | None:
        """Return how far off a row is on average; None for texts."""
        return float(np.mean(self.distances)) if self.distances else None


@dataclass
class ReplaySummary:
    """The answers of a new bundle to recorded requests, summed up.

    Attributes:
        test: whether its answers are alike.
        requests, rows: how many were compared.
        changed: how many rows changed.
        versions: how many requests each version had answered.
        unrecorded: how many requests were not asked again, as they had too many values to be recorded.
        misfits: how many requests do not fit the new bundle, or were answered incomparably, by the reason.
        outputs: how each output changed.
        shown: the rows that changed, those that changed most first.
    """

    test: AgreementTest
    requests: int = 0
    rows: int = 0
    changed: int = 0
    versions: Counter[int] = field(default_factory=Counter)
    unrecorded: int = 0
    misfits: Counter[str] = field(default_factory=Counter)
    outputs: dict[str, OutputSummary] = field(default_factory=dict)
    shown: list[ChangedRow] = field(default_factory=list)


class Replay:
    """Sends recorded requests to a new bundle, one after another."""

    def __init__(
        self,
        predictor: Predictor,
        test: AgreementTest,
        tolerance: float = TOLERANCE,
        most_shown: int = MOST_SHOWN,
    ) -> None:
        self._predictor, self._tolerance, self._most_shown = predictor, tolerance, most_shown
        self._summary = ReplaySummary(test)
        self._number = itertools.count()
        # The rows that changed most; a serial number decides between equal ones.
        self._heap: list[tuple[float, int, ChangedRow]] = []

    def run(self, requests: Iterable[RecordedRequest]) -> ReplaySummary:
        """Send all requests."""
        for one in requests:
            self._ask(one)
        found = self._summary
        found.shown = [row for _, _, row in sorted(self._heap, key=lambda kept: (-kept[0], -kept[1]))]
        return found

    def _ask(self, one: RecordedRequest) -> None:
        found = self._summary
        if not one.is_whole:
            found.unrecorded += 1
            return
        try:
            after = _as_recorded(self._predictor.predict(dict(one.inputs)))
            before = read_answers(self._predictor.bundle.signature.outputs, one.answers)
            changes = compare_answers(before, after, self._tolerance)
        except ArgumentError as error:
            found.misfits[str(error)] += 1
            return
        found.requests += 1
        found.rows += len(changes.changed)
        found.changed += int(changes.changed.sum())
        found.versions[one.version] += 1
        found.test.add(changes.share)
        for name, output in changes.outputs.items():
            _add(found.outputs.setdefault(name, OutputSummary()), output.changed, output.distance)
        self._keep_changed(one, changes, before, after)

    def _keep_changed(
        self,
        one: RecordedRequest,
        changes: AnswerChanges,
        before: Mapping[str, Array],
        after: Mapping[str, Array],
    ) -> None:
        for row in np.flatnonzero(changes.changed).tolist() if self._most_shown else ():
            distances = [part.distance[row] for part in changes.outputs.values() if part.distance is not None]
            distance = float(max(distances, default=0.0))
            if len(self._heap) == self._most_shown and distance <= self._heap[0][0]:
                continue
            inputs = {name: values[row] for name, values in one.inputs.items() if isinstance(values, list)}
            old, new = (
                {name: part[row : row + 1].tolist()[0] for name, part in side.items()}
                for side in (before, after)
            )
            kept = ChangedRow(str(one.file), one.line, row + 1, distance, inputs, old, new)
            heapq.heappush(self._heap, (distance, -next(self._number), kept))
            if len(self._heap) > self._most_shown:
                heapq.heappop(self._heap)


def _add(summary: OutputSummary, changed: Array, distance: Array | None) -> None:
    summary.rows += len(changed)
    summary.changed += int(changed.sum())
    if distance is not None and len(summary.distances) < _MOST_DISTANCES:
        summary.distances += distance.tolist()


def _as_recorded(answers: Mapping[str, Array]) -> dict[str, Array]:
    """Return answers as they are after JSON, which has no infinite numbers."""
    return {
        name: np.where(np.isfinite(one), one, np.nan).astype(one.dtype) if one.dtype.kind == "f" else one
        for name, one in answers.items()
    }
