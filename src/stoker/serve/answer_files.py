"""Files of answers, in any format. Importing this imports neither TensorFlow nor NumPy."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from stoker.errors import ArgumentError

Columns: TypeAlias = dict[str, list[Any]]
Writer: TypeAlias = Callable[[Columns], None]
FORMATS = (".csv", ".tsv", ".jsonl", ".parquet")


def check_format(path: str) -> str:
    """Return the ending of a file's name.

    Raises:
        ArgumentError: the ending is not a known format.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ArgumentError(f"{path}: use a name that ends in {', '.join(FORMATS)}")
    return suffix


@contextmanager
def open_writer(path: str) -> Iterator[Writer]:
    """Yield a function that appends columns to a file. The file appears only once everything is written.

    Raises:
        ArgumentError: the ending of its name is not a known format, or the file cannot be written.
    """
    suffix = check_format(path)
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if suffix == ".parquet":
            with _parquet_writer(beside) as write:
                yield write
        else:
            with beside.open("w", encoding="utf-8", newline="") as stream:
                yield text_writer(stream, suffix)
        os.replace(beside, target)
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        beside.unlink(missing_ok=True)


def text_writer(stream: TextIO, suffix: str = ".csv") -> Writer:
    """Return a function that writes columns to a stream as CSV, TSV or JSON lines."""
    if suffix == ".jsonl":

        def write_lines(columns: Columns) -> None:
            for cells in zip(*columns.values(), strict=True):
                row = dict(zip(columns, cells, strict=True))
                stream.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")

        return write_lines
    rows = csv.writer(stream, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
    header: list[str] = []

    def write(columns: Columns) -> None:
        if not header:
            header.extend(columns)
            rows.writerow(header)
        rows.writerows(zip(*(columns.get(name, [None] * _length(columns)) for name in header), strict=True))

    return write


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values())))


@contextmanager
def _parquet_writer(path: Path) -> Iterator[Writer]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    made: list[pq.ParquetWriter] = []

    def write(columns: Columns) -> None:
        try:
            if not made:
                table = pa.table({name: _array(pa, values) for name, values in columns.items()})
                made.append(pq.ParquetWriter(path, table.schema))
            else:
                arrays = {f.name: pa.array(columns[f.name], f.type) for f in made[0].schema}
                table = pa.table(arrays)
            made[0].write_table(table)
        except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError) as error:
            raise ArgumentError(
                f"the types of the columns differ between rows ({error}): write a .csv or .jsonl file instead"
            ) from None

    try:
        yield write
    finally:
        for one in made:
            one.close()


def _array(pa: Any, values: list[Any]) -> Any:
    """Return the values as an array; if all are missing, as an array of text."""
    found = pa.array(values)
    return found.cast(pa.string()) if pa.types.is_null(found.type) else found
