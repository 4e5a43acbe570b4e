"""Seals: what a run was when it ended, as digests that go into the audit.

A batch that leaves a run ended adds a row "run sealed" with a digest of each part of it: its row (parameters, state
...), its values, its ledger, its findings. A later batch, as of a worker that was late, adds another. Links to
artifacts have rows of their own.

Points are hashed while they are written, column by column, so that a seal costs the same however many there are. Where
another process has written some of them, they are read once more.
"""

from __future__ import annotations

import hashlib
import math
import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stoker.tracking.store.entries import compact

# A statement with `?` for its parameters, to its rows.
Select = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]

PARTS = ("row", "values", "ledger", "findings")
# Not sealed: `seen` says when a run was last heard of, `audit_seq` is the audit's own.
_COLUMNS = (
    "name, kind, program, arguments, parameters, git_commit, git_diff, versions, machine, state, error, exit_code, "
    "parent, worker, started, ended, steps, wall_s, steps_per_s, examples_per_s"
)
_BLOCK = 20_000


@dataclass
class _Stream:
    """The points of a series so far: a hash of its steps, of its times and of its values."""

    count: int = 0
    hashes: tuple[Any, Any, Any] = field(default_factory=lambda: (_sha(), _sha(), _sha()))

    def add(self, steps: Sequence[int], times: Sequence[float], values: Sequence[float]) -> None:
        self.count += len(steps)
        # Every NaN is the same here, for the store keeps it as NULL; and SQLite does not tell -0.0 from 0.0.
        plain = [value + 0.0 if value == value else math.nan for value in values]
        columns: tuple[array[Any], ...] = (array("q", steps), array("d", times), array("d", plain))
        for hashed, column in zip(self.hashes, columns, strict=True):
            if sys.byteorder == "big":
                column.byteswap()
            hashed.update(column)

    def digest(self) -> str:
        return ":".join(one.hexdigest()[:32] for one in self.hashes)


class Streams:
    """The series that one process appends to, hashed on the way."""

    def __init__(self) -> None:
        self._streams: dict[int, _Stream] = {}

    def add(
        self, series: int, first: int, steps: Sequence[int], times: Sequence[float], values: Sequence[float]
    ) -> None:
        """Points were appended to a series, the first of them with the number `first`."""
        stream = self._streams.get(series)
        if stream is None and first == 0:
            stream = self._streams[series] = _Stream()
        if stream is not None and stream.count == first:
            stream.add(steps, times, values)
        else:
            # Another process has appended in between: read them when they are needed.
            self._streams.pop(series, None)

    def clear(self) -> None:
        """What was appended may not be in the store."""
        self._streams.clear()

    def take(self, series: int, count: int) -> str | None:
        """The digest of a series with so many points, which is then forgotten; None if it is not known."""
        stream = self._streams.pop(series, None)
        return None if stream is None or stream.count != count else stream.digest()


def digests(select: Select, run: str, streams: Streams | None = None) -> dict[str, str]:
    """The digest of each part of a run."""
    series = select("SELECT id, name, count, last, last_step, min, max FROM series WHERE run = ?", (run,))
    values = []
    for number, name, count, *figures in sorted(series, key=lambda row: str(row[1])):
        known = streams.take(number, count) if streams is not None else None
        values.append([name, count, *figures, known or _read(select, number)])
    parts = {
        "row": select(f"SELECT {_COLUMNS} FROM runs WHERE id = ?", (run,)),
        "values": values,
        "ledger": sorted(select("SELECT account, seconds FROM ledger WHERE run = ?", (run,))),
        "findings": select("SELECT finding FROM findings WHERE run = ? ORDER BY n", (run,)),
    }
    return {name: hashlib.sha256(compact(part).encode()).hexdigest() for name, part in parts.items()}


def _read(select: Select, series: int) -> str:
    stream, last = _Stream(), -1
    while True:
        rows = select(
            "SELECT n, step, time, value FROM points WHERE series = ? AND n > ? ORDER BY n LIMIT ?",
            (series, last, _BLOCK),
        )
        if not rows:
            return stream.digest()
        numbers, steps, times, values = zip(*rows, strict=True)
        stream.add(steps, times, [math.nan if value is None else value for value in values])
        last = numbers[-1]


def _sha() -> Any:
    return hashlib.sha256()
