"""The readers of tables: CSV, Parquet, JSON lines, SQL queries, frames in memory."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from stoker.data import paths as found
from stoker.data.arrow_sources import Frame, ParquetFiles, Query
from stoker.data.csv_files import CsvFiles
from stoker.data.ingest import Source
from stoker.data.json_files import JsonLines
from stoker.data.odd_cells import check_missing
from stoker.data.tables import Options, table
from stoker.errors import ArgumentError, check_local_path

if TYPE_CHECKING:
    from typing_extensions import Unpack

Cache = str | os.PathLike[str] | bool | None
Texts = str | Sequence[str] | None
Split = float | tuple[float, ...] | None


class RowOptions(TypedDict, total=False):
    """What can be said by name to every reader of tables; `csv` says what each means."""

    columns: Sequence[str] | None
    types: dict[str, str] | None
    missing: Texts
    raw: bool
    label_mode: str
    shard: tuple[int, int]
    drop_remainder: bool
    group: str | None
    time: str | None


class FileOptions(RowOptions, total=False):
    """The same, of files: they are read once and cached."""

    cache: Cache


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
    cache: Cache = None,
    group: str | None = None,
    time: str | None = None,
) -> Any:
    """Rows of CSV files with a header, in batches of `({column: tensor}, label)`.

    Args:
        paths: a path, a glob, a directory, or several; `.gz`, `.bz2` and `.zst` are unpacked.
        label: the column to predict; None gives the columns alone.
        batch_size: rows a batch; the last batch may have fewer.
        shuffle: a full shuffle, another one each epoch, made from the seed and the number of the epoch.
        seed: of the shuffles and of the split.
        validation_split: this part of the rows is held out: the result is `(train, held_out)`. With `shuffle` the seed
            draws them, otherwise they are the last ones. Several parts, `(0.1, 0.1)`, give a dataset each.
        sep: between the fields.
        encoding: of the files.
        columns: the ones to read; all by default.
        types: kinds of columns where the inferred one is wrong: "number", "whole", "truth", "category", "text", "date".
        missing: a text that stands for a missing value, such as "?", or several, beside an empty field and NaN. Other
            readers take it for text cells.
        raw: the file's own values: text as text, numbers as float64 and int64, the label as it is.
        label_mode: "auto" (text and truth values are classes, numbers are numbers), "int", "categorical", "binary",
            "number".
        shard: `(index, count)`: this process takes every `count`-th row of the epoch's order.
        drop_remainder: leave out a last batch that is not full.
        cache: the directory of the cache; None for the user's cache directory, False to keep the rows in memory.
        group: a column: rows with the same value in it are held out together. It is no input.
        time: a column of dates or numbers: the latest rows are held out. It is no input.

    Returns:
        A `tf.data.Dataset` with `rows`, `features`, `class_names`; two of them with `validation_split`.

    Raises:
        ArgumentError: a file, a value or an argument that makes no sense; a `ValueError`.
    """
    absent = check_missing(missing)
    source = CsvFiles(found.files(paths, found.CSV), sep, encoding, absent)
    options = Options(
        label=label,
        batch_size=batch_size,
        shuffle=shuffle,
        seed=seed,
        validation_split=validation_split,
        columns=columns,
        types=types,
        missing=absent,
        raw=raw,
        label_mode=label_mode,
        shard=shard,
        drop_remainder=drop_remainder,
        cache=cache,
        group=group,
        time=time,
    )
    return table(source, options, [sep, encoding])


def parquet(
    paths: found.Paths,
    label: str | None = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    validation_split: Split = None,
    **options: Unpack[FileOptions],
) -> Any:
    """Rows of Parquet files; the arguments are those of `csv`."""
    source = ParquetFiles(found.files(paths, found.PARQUET), check_missing(options.get("missing")))
    return _read(source, label, batch_size, shuffle, seed, validation_split, **options)


def jsonl(
    paths: found.Paths,
    label: str | None = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    validation_split: Split = None,
    **options: Unpack[FileOptions],
) -> Any:
    """Rows of files with one JSON object a line; the arguments are those of `csv`."""
    source = JsonLines(
        found.files(paths, found.JSONL),
        chosen=options.get("columns") is not None,
        missing=check_missing(options.get("missing")),
    )
    return _read(source, label, batch_size, shuffle, seed, validation_split, **options)


def frame(
    data: Any,
    label: str | None = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    validation_split: Split = None,
    **options: Unpack[RowOptions],
) -> Any:
    """Rows of a pandas or polars frame, an Arrow table, a Hugging Face dataset or a dict of columns.

    The rows are kept in memory a second time, in the form they are trained from. The other arguments are `csv`'s.
    """
    source = Frame(data, check_missing(options.get("missing")))
    return _read(source, label, batch_size, shuffle, seed, validation_split, cache=False, **options)


def sql(
    connection: Any,
    query: str,
    label: str | None = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    validation_split: Split = None,
    **options: Unpack[RowOptions],
) -> Any:
    """Rows of a SQL query, fetched once in blocks and kept in memory.

    Args:
        connection: an open DBAPI or SQLAlchemy connection, or the path of an SQLite file.
        query: a SELECT. Without ORDER BY the database may give another order next time, and so another shuffle.

    The other arguments are those of `csv`.
    """
    missing = check_missing(options.get("missing"))
    source = Query(_cursor(connection, query), f"the query {query[:60]!r}", missing)
    return _read(source, label, batch_size, shuffle, seed, validation_split, cache=False, **options)


def _read(
    source: Source,
    label: str | None,
    batch_size: int,
    shuffle: bool,
    seed: int,
    validation_split: Split,
    **options: Unpack[FileOptions],
) -> Any:
    """The dataset of a source of which nothing but the options decides on the values."""
    chosen = Options(
        label=label,
        batch_size=batch_size,
        shuffle=shuffle,
        seed=seed,
        validation_split=validation_split,
        **options,
    )
    return table(source, chosen, [])


_Opened = Callable[[], contextlib.AbstractContextManager[tuple[list[str], Callable[[int], list[Any]]]]]


def _cursor(connection: Any, query: str) -> _Opened:
    """What runs the query: names of the columns, and a function that fetches rows."""

    @contextlib.contextmanager
    def opened() -> Iterator[tuple[list[str], Callable[[int], list[Any]]]]:
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
                    cursor = closing.enter_context(contextlib.closing(_executed(own, query)))
                    names = list(cursor.keys())
            except ArgumentError:
                raise
            except Exception as error:
                raise ArgumentError(
                    f"the query {query[:60]!r} fails: {str(error).splitlines()[0]}"
                ) from error
            if not names:
                raise ArgumentError(f"the query {query[:60]!r} gives no rows: it must be a SELECT")
            yield names, cursor.fetchmany

    return opened


def _executed(connection: Any, query: str) -> Any:
    if not hasattr(connection, "execute"):
        raise ArgumentError(
            f"sql: give a DBAPI or SQLAlchemy connection or the path of an SQLite file, not {type(connection).__name__}"
        )
    import sqlalchemy

    return connection.execution_options(stream_results=True).execute(sqlalchemy.text(query))
