"""Seals: digests of a run as it was when it ended, for the audit.

After a batch that ends a run or changes an ended one, the audit gets a row "run sealed" with a digest of each part of
the run: its row (parameters, state, ...), its values, its ledger and its findings. So a later batch, such as that of a
late worker, adds another seal. Links to artifacts have audit rows of their own.

Points are hashed as they are written, column by column, so the cost of sealing does not depend on their number. If
another process has written some of them, they are read back once.
"""

from __future__ import annotations

import hashlib
import math
import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from stoker.tracking.store.connections import Row
from stoker.tracking.store.plain_values import dump_compact
from stoker.tracking.store.schema import SEALED_COLUMNS

# Runs a query with `?` for its parameters and returns its rows.
Select: TypeAlias = Callable[[str, Sequence[object]], list[Row]]

PARTS = ("row", "values", "ledger", "findings")
_BLOCK = 20_000


@dataclass
class _Stream:
    """The points of a series so far: a hash of the steps, one of the times, and one of the values."""

    count: int = 0
    hashes: tuple[hashlib._Hash, ...] = field(
        default_factory=lambda: tuple(hashlib.sha256() for _ in range(3))
    )

    def add(self, steps: Sequence[int], times: Sequence[float], values: Sequence[float]) -> None:
        self.count += len(steps)
        # The store keeps every NaN as NULL, and SQLite does not distinguish -0.0 from 0.0.
        plain = [value + 0.0 if value == value else math.nan for value in values]
        columns: tuple[array[int] | array[float], ...] = (
            array("q", steps),
            array("d", times),
            array("d", plain),
        )
        for hashed, column in zip(self.hashes, columns, strict=True):
            if sys.byteorder == "big":
                column.byteswap()
            hashed.update(column)

    def digest(self) -> str:
        return ":".join(one.hexdigest()[:32] for one in self.hashes)


class Streams:
    """The series to which this process appends, hashed as it does so."""

    def __init__(self) -> None:
        self._streams: dict[int, _Stream] = {}

    def add(
        self, series: int, first: int, steps: Sequence[int], times: Sequence[float], values: Sequence[float]
    ) -> None:
        """Note that points were appended to a series, starting with number `first`."""
        stream = self._streams.get(series)
        if stream is None and first == 0:
            stream = self._streams[series] = _Stream()
        if stream is not None and stream.count == first:
            stream.add(steps, times, values)
        else:
            # Another process has appended in between: read the points back when sealing.
            self._streams.pop(series, None)

    def clear(self) -> None:
        """Forget everything, because the appended points may not be in the store."""
        self._streams.clear()

    def take(self, series: int, count: int) -> str | None:
        """Return the digest of a series with this many points, and forget it; None if it is unknown."""
        stream = self._streams.pop(series, None)
        return None if stream is None or stream.count != count else stream.digest()


def compute_digests(select: Select, run: str, streams: Streams | None = None) -> dict[str, str]:
    """Compute the digest of each part of a run."""
    series = select("SELECT id, name, count, last, last_step, min, max FROM series WHERE run = ?", (run,))
    values = []
    for number, name, count, *figures in sorted(series, key=lambda row: str(row[1])):
        known = streams.take(number, count) if streams is not None else None
        values.append([name, count, *figures, known or _hash_points(select, number)])
    parts = {
        "row": select(f"SELECT {', '.join(SEALED_COLUMNS)} FROM runs WHERE id = ?", (run,)),
        "values": values,
        "ledger": sorted(select("SELECT account, seconds FROM ledger WHERE run = ?", (run,))),
        "findings": select("SELECT finding FROM findings WHERE run = ? ORDER BY n", (run,)),
    }
    return {name: hashlib.sha256(dump_compact(part).encode()).hexdigest() for name, part in parts.items()}


def _hash_points(select: Select, series: int) -> str:
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
