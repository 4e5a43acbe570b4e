"""The readers of tables: CSV, Parquet and JSON lines files, SQL queries, frames in memory."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from stoker.data import paths as found
from stoker.data.arrow_sources import FrameSource, ParquetFiles, Query, QueryRows
from stoker.data.cache import CachePlace
from stoker.data.csv_files import CsvFiles
from stoker.data.frames import ColumnHolder
from stoker.data.json_files import JsonLines
from stoker.data.odd_cells import check_missing
from stoker.data.splits import Split
from stoker.data.tables import TableOptions, table
from stoker.errors import ArgumentError, check_local_path, first_line
from stoker.tf_internals.types import Dataset

if TYPE_CHECKING:
    from typing_extensions import Unpack

Texts = str | Sequence[str] | None
# A connection of a DBAPI driver or of SQLAlchemy, recognised by its methods.
Connection: TypeAlias = Any
_Cursor: TypeAlias = Any


class RowOptions(TypedDict, total=False):
    """Keyword arguments of every reader of tables; `csv` describes them."""

    columns: Sequence[str] | None
    types: dict[str, str] | None
    missing: Texts
    raw: bool
    label_mode: str
    shard: tuple[int, int]
    drop_remainder: bool
    group: str | None
    time: str | None
    lenient: bool


class FileOptions(RowOptions, total=False):
    """Keyword arguments of the readers of files, which are read once and cached."""

    cache: CachePlace


@found.parses_as_files_arrive
def csv(
    paths: found.Paths,
    label: str | None = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    validation_split: Split = None,
    *,
    sep: str = ",",
    encoding: str = "utf8",
    columns: Sequence[str] | None = None,
    types: dict[str, str] | None = None,
    missing: Texts = None,
    raw: bool = False,
    label_mode: str = "auto",
    shard: tuple[int, int] = (0, 1),
    drop_remainder: bool = False,
    cache: CachePlace = None,
    group: str | None = None,
    time: str | None = None,
    lenient: bool = False,
    cache_bytes: int | None = None,
) -> Dataset:
    """Read rows of CSV files with a header, in batches of `({column: tensor}, label)`.

    Args:
        paths: a path, a glob, a directory, or several, each of which may be a URL (`s3://bucket/train/*.csv`); `.gz`,
            `.bz2` and `.zst` are unpacked.
        label: the column to predict; None gives the columns alone.
        batch_size: rows per batch; the last batch may have fewer.
        shuffle: shuffle all rows, differently in each epoch, by the seed and the number of the epoch.
        seed: the seed of the shuffles and of the split.
        validation_split: the share of the rows to hold out: the result is `(train, held_out)`. With `shuffle` they are
            drawn by the seed, otherwise they are the last rows. Several shares, `(0.1, 0.1)`, give a dataset each.
        sep: the separator between fields.
        encoding: the encoding of the files.
        columns: the columns to read; all by default.
        types: the kinds of columns for which Stoker infers the wrong one: "number", "whole", "truth", "category",
            "text", "date".
        missing: a text that stands for a missing value, such as "?", or several, in addition to an empty field and
            NaN. Other readers apply it to cells that hold text.
        raw: give the file's own values: text as text, numbers as float64 and int64, the label unchanged.
        label_mode: "auto" (text and truth values are classes, numbers are numbers), "int", "categorical", "binary",
            "number".
        shard: `(index, count)`: this process takes every `count`-th row of the epoch's order.
        drop_remainder: leave out a last batch that is not full.
        cache: the directory of the cache; None for the user's cache directory, False to keep the rows in memory.
        group: a column: rows with the same value in it are held out together. It is not an input.
        time: a column of dates or numbers: the latest rows are held out. It is not an input.
        lenient: read tables as people write them: numbers with units, currencies and thousands signs, dates in several
            forms, another separator or encoding, uneven rows. A cell that cannot be read is missing, and rows without a
            label are left out; `dataset.features.found` counts them.
        cache_bytes: for URLs: the most that copies on this machine may take together; the least recently used are
            removed. By default `STOKER_CACHE_BYTES`, or half of the disk.

    Returns:
        A `tf.data.Dataset` with `rows`, `features` and `class_names`; two of them with `validation_split`.

    Raises:
        ArgumentError: a file, a value or an argument is invalid; it is a `ValueError`.
    """
    absent = check_missing(missing)
    source = CsvFiles(found.files(paths, found.CSV, cache_bytes), sep, encoding, absent, lenient and not raw)
    passes = (batch_size, shuffle, seed, validation_split, shard, drop_remainder)
    options = TableOptions(
        *passes, label, columns, types, absent, raw, label_mode, cache, group, time, lenient
    )
    return table(source, options, [sep, encoding])


@found.parses_as_files_arrive
def parquet(
    paths: found.Paths,
    label: str | None = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    validation_split: Split = None,
    *,
    cache_bytes: int | None = None,
    **options: Unpack[FileOptions],
) -> Dataset:
    """Read rows of Parquet files; the arguments are those of `csv`."""
    files = found.files(paths, found.PARQUET, cache_bytes)
    source = ParquetFiles(files, check_missing(options.get("missing")))
    return table(source, TableOptions(batch_size, shuffle, seed, validation_split, label=label, **options))


@found.parses_as_files_arrive
def jsonl(
    paths: found.Paths,
    label: str | None = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    validation_split: Split = None,
    *,
    cache_bytes: int | None = None,
    **options: Unpack[FileOptions],
) -> Dataset:
    """Read rows of files with one JSON object per line; the arguments are those of `csv`."""
    source = JsonLines(
        found.files(paths, found.JSONL, cache_bytes),
        chosen=options.get("columns") is not None or options.get("lenient", False),
        missing=check_missing(options.get("missing")),
        lenient=options.get("lenient", False),
    )
    return table(source, TableOptions(batch_size, shuffle, seed, validation_split, label=label, **options))


def frame(
    data: ColumnHolder,
    label: str | None = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    validation_split: Split = None,
    **options: Unpack[RowOptions],
) -> Dataset:
    """Read rows of a pandas or polars frame, an Arrow table, a Hugging Face dataset or a dict of columns.

    Memory holds a second copy of the rows, in the form that training reads. The other arguments are those of `csv`.
    """
    source = FrameSource(data, check_missing(options.get("missing")))
    passes = (batch_size, shuffle, seed, validation_split)
    return table(source, TableOptions(*passes, label=label, cache=False, **options))


def sql(
    connection: Connection | str | os.PathLike[str],
    query: str,
    label: str | None = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    validation_split: Split = None,
    **options: Unpack[RowOptions],
) -> Dataset:
    """Read rows of a SQL query, fetched once in blocks and kept in memory.

    Args:
        connection: an open DBAPI or SQLAlchemy connection, or the path of an SQLite file.
        query: a SELECT. Without ORDER BY the database may change the order next time, and with it the shuffle.

    The other arguments are those of `csv`.
    """
    missing = check_missing(options.get("missing"))
    source = Query(functools.partial(_run, connection, query), f"the query {query[:60]!r}", missing)
    passes = (batch_size, shuffle, seed, validation_split)
    return table(source, TableOptions(*passes, label=label, cache=False, **options))


@contextlib.contextmanager
def _run(connection: Connection | str | os.PathLike[str], query: str) -> Iterator[QueryRows]:
    """Run the query. Yield the names of its columns, and a function that fetches rows."""
    with contextlib.ExitStack() as closing:
        own = connection
        if isinstance(own, str | os.PathLike):
            check_local_path(own)
            if not Path(own).is_file():
                raise ArgumentError(f"there is no SQLite file {os.fspath(own)}")
            own = closing.enter_context(contextlib.closing(sqlite3.connect(own)))
        try:
            if hasattr(own, "cursor"):
                cursor = closing.enter_context(contextlib.closing(own.cursor()))
                cursor.execute(query)
                names = [part[0] for part in cursor.description or ()]
            else:
                cursor = closing.enter_context(contextlib.closing(_execute(own, query)))
                names = list(cursor.keys())
        except ArgumentError:
            raise
        except Exception as error:
            raise ArgumentError(f"the query {query[:60]!r} fails: {first_line(error)}") from error
        if not names:
            raise ArgumentError(f"the query {query[:60]!r} returns no rows: give a SELECT")
        yield names, cursor.fetchmany


def _execute(connection: Connection, query: str) -> _Cursor:
    if not hasattr(connection, "execute"):
        raise ArgumentError(
            f"sql: give a DBAPI or SQLAlchemy connection or the path of an SQLite file, not {type(connection).__name__}"
        )
    import sqlalchemy

    return connection.execution_options(stream_results=True).execute(sqlalchemy.text(query))
