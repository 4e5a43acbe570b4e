"""The prices of lines in saved runs, which `stoker check` and editors show beside a finding."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from stoker.doctor.check.rule import Problem

# 1.04x would be shown as 1.0x, which is no gain.
_NOTICEABLE = 1.05


@dataclass(frozen=True)
class PriceOfLine:
    """The price that one run gives one stall at one line."""

    file: str
    line: int
    kind: str
    # The line's text when the program ran, or "" if the record does not say.
    source: str
    speedup: float
    # "measured" or "modelled", or "" if the record does not say.
    basis: str
    run_id: str

    def attach_to(self, problem: Problem) -> Problem:
        """Return the problem with this price."""
        return replace(problem, measured=self.speedup, basis=self.basis)


def describe_gain(speedup: float) -> str:
    """Return a price in words: `3.1x faster without it`."""
    gain = f"{speedup:.1f}x" if speedup >= _NOTICEABLE else "hardly"
    return f"{gain} faster without it"


class PriceList:
    """The prices of all lines in saved runs. The latest run with a price for a line decides."""

    def __init__(self, prices: Iterable[PriceOfLine] = ()) -> None:
        self._by_kind: dict[tuple[str, str], dict[int, PriceOfLine]] = {}
        for price in prices:
            self._by_kind.setdefault((price.file, price.kind), {})[price.line] = price

    def find(self, problem: Problem) -> PriceOfLine | None:
        """Return the price of a problem's line or, since lines move, of the nearest line with the same text."""
        known = self._by_kind.get((problem.file, problem.kind), {})
        source = problem.source.strip()
        here = known.get(problem.line)
        if here is not None and (not here.source or not source or here.source.strip() == source):
            return here
        moved = [price for price in known.values() if source and price.source.strip() == source]
        return min(moved, key=lambda price: abs(price.line - problem.line), default=None)


def read_prices(folders: Iterable[Path]) -> PriceList:
    """Read the records in these folders (`.stoker/runs`), each folder's oldest first."""
    found: list[PriceOfLine] = []
    for folder in folders:
        if folder.is_dir():
            # Imported only if there are saved runs: most checks have none, and must start quickly.
            from stoker.tracking.store import record_files

            for run_id in record_files.ids(folder):
                path = record_files.path_of(run_id, folder)
                found += _read_record(path, _stamp(path))
    return PriceList(found)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


# An editor asks again and again, while a record does not change once its program has ended.
@functools.lru_cache(maxsize=1024)
def _read_record(path: Path, stamp: tuple[int, int]) -> tuple[PriceOfLine, ...]:
    from stoker.errors import RecordError
    from stoker.records import speedup_without
    from stoker.tracking.store import record_files

    try:
        record = record_files.read(path)
    except RecordError:
        # `stoker runs` reports a damaged record. Here it only means that no price is known.
        return ()
    # A record names files relative to the directory that holds `.stoker/runs`.
    base = path.parent.parent.parent
    prices = []
    for finding in record.findings:
        speedup = speedup_without(finding, record)
        if speedup is not None:
            file = os.path.abspath(base / finding.file)
            basis = (finding.what_if.basis or "") if finding.what_if is not None else ""
            place = (file, finding.line, finding.kind, finding.source)
            prices.append(PriceOfLine(*place, speedup, basis, record.id))
    return tuple(prices)
