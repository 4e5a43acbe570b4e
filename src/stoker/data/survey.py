"""What a file or folder holds: rows, columns, kinds, missing values, their spread, how fast they are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker import clock
from stoker.data import statistics
from stoker.data.arrow_sources import Unfit
from stoker.data.columns import Column
from stoker.data.ingest import Source, stored
from stoker.data.store import Store
from stoker.data.table_files import table_files
from stoker.errors import ArgumentError

_BINS = 10
_TOP = 10
_SPEED_S = 2.0


def survey(path: str, sep: str = ",", encoding: str = "utf8") -> dict[str, Any]:
    """Everything `stoker data` says, as JSON.

    Raises:
        ArgumentError: nothing is there that a table reader reads.
    """
    kind, source, files = table_files(path, sep, encoding)
    found = source.columns()
    wanted = [column for column in found if not isinstance(column, Unfit)]
    if not wanted:
        raise ArgumentError(f"{path} has no column of numbers or text")
    # As a reader called without further arguments reads it, so that both share a cache.
    store = stored(source, wanted, [*([sep, encoding] if kind == "csv" else []), False, None], None)
    columns = [Column(**one) for one in store.meta["columns"]]
    size = sum(file.stat().st_size for file in files)
    rows_per_s = _speed(source, columns)
    return {
        "path": path,
        "format": kind,
        "files": len(files),
        "bytes": size,
        "rows": store.rows,
        "cache_bytes": store.bytes,
        "rows_per_s": round(rows_per_s),
        "bytes_per_s": round(rows_per_s * size / store.rows),
        "columns": [_about(store, columns, column) for column in columns],
        "left_out": [column.name for column in found if isinstance(column, Unfit)],
    }


def _speed(source: Source, columns: list[Column]) -> float:
    """Rows a second of reading and parsing alone, from the first seconds of a pass."""
    start, rows, seconds = clock.real_ns(), 0, 0.0
    for block in source.blocks(columns):
        rows += len(block)
        seconds = (clock.real_ns() - start) / 1e9
        if seconds > _SPEED_S:
            break
    return rows / max(seconds, 1e-9)


def _about(store: Store, columns: list[Column], column: Column) -> dict[str, Any]:
    about: dict[str, Any] = {
        "name": column.name,
        "kind": column.kind,
        "missing": int(store.meta["missing"][column.name]),
    }
    if column.unit:
        about["unit"] = column.unit
    if column.kind == "text":
        number = [one.name for one in columns].index(column.name)
        lengths = np.diff(store.array(f"ends-{number}"))
        return {**about, "characters": _spread(lengths)}
    place = statistics.places(columns)[column.dtype].index(column.name)
    values = store.array(column.dtype)[:, place]
    if column.kind == "category":
        counts = np.bincount(values + 1, minlength=1)[1:]
        words = store.meta["values"].get(column.name, [])
        order = sorted(range(len(words)), key=lambda code: (-counts[code], words[code]))
        return {**about, "different": len(words), "top": [[words[i], int(counts[i])] for i in order[:_TOP]]}
    return {**about, "values": _spread(values)}


def _spread(values: Any) -> dict[str, Any] | None:
    """Least, largest, mean and ten equal steps between; None where there is no value."""
    there = np.asarray(values)
    there = there[np.isfinite(there)] if there.dtype.kind == "f" else there
    if not len(there):
        return None
    low, high = there.min(), there.max()
    # From the least value on: the digits of large whole numbers stay exact.
    above = (there - low).astype(np.float64)
    counts, _ = np.histogram(above, _BINS, (0, float(above.max()) or 1))
    mean = float(low) + float(above.mean())
    return {"least": low.item(), "largest": high.item(), "mean": mean, "histogram": counts.tolist()}
