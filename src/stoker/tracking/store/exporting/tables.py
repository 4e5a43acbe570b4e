"""Export every point as a row of a CSV file, or of a Parquet file (with pyarrow)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from stoker.errors import UsageError
from stoker.files import replacing
from stoker.tracking.store.queries import Reader
from stoker.tracking.store.schema import RunRow

COLUMNS = ("run", "name", "series", "step", "time", "value")


def export(reader: Reader, rows: list[RunRow], path: Path) -> Path:
    """Write the points of runs to a .csv or .parquet file.

    Raises:
        UsageError: the file has another suffix, or pyarrow is missing.
    """
    if path.suffix == ".csv":
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as raw:
            file = io.TextIOWrapper(raw, encoding="utf-8", newline="")
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(_read_points(reader, rows))
            file.flush()
            file.detach()
        return path
    if path.suffix != ".parquet":
        raise UsageError(f"{path}: the file name must end in .csv or .parquet")
    _write_parquet(path, list(_read_points(reader, rows)))
    return path


def _write_parquet(path: Path, points: list[tuple[object, ...]]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError("Parquet needs pyarrow: pip install 'stoker[data]'") from None
    kinds = (pa.string(), pa.string(), pa.string(), pa.int64(), pa.float64(), pa.float64())
    columns = zip(*points, strict=True) if points else ([] for _ in COLUMNS)
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, kinds, strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        pq.write_table(pa.table(arrays, names=list(COLUMNS)), file)


def _read_points(reader: Reader, rows: list[RunRow]) -> Iterator[tuple[object, ...]]:
    for row in rows:
        for name in row.series:
            for step, at, value in reader.points(row.id, name):
                yield row.id, row.name, name, step, at, value
