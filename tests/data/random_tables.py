"""Random tables, as files and frames: whatever a reader may meet, made from a seed alone."""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

KINDS = ("csv", "csv", "csv", "parquet", "jsonl", "pandas", "polars", "sql", "tfrecord")
_LETTERS = [*"abXYZ019 ,;|\t'\"#\\/%_-.", "é", "ß", "日", "🙂", "\u2028", "\x0b", "\x85", "\xa0", "\u0301"]
_BREAKS = ["\n", "\r\n", "\r", "\n\n"]
_NUMBERS = (
    "{:d}",
    "{:+d}",
    " {:d}",
    "{:d} ",
    "{:05d}",
    "{:d}.",
    "{:d}.0",
    "{:d}e3",
    "{:d}E-2",
    ".{:03d}",
    "-{:d}.5",
)
_ODD = [
    "?",
    "n.a.",
    "-",
    "NA",
    "nan",
    "None",
    "inf",
    "-Infinity",
    "0x1F",
    "1_000",
    "1,5",
    str(2**63),
    str(2**70),
]
_DATES = "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%d/%m/%Y", "%Y-%m-%dT%H:%M:%SZ", "%H:%M:%S"


@dataclass(frozen=True)
class Case:
    """One table.

    Attributes:
        kind: one of `KINDS`.
        data: what the reader is given: a path or a frame.
        options: of the reader.
        columns: the values that were written; of a CSV file, the texts.
    """

    kind: str
    data: Any
    options: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, list[Any]] = field(default_factory=dict)


def make_case(seed: int, folder: Path) -> Case:
    """The table of this seed, in a folder of its own."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    kind = KINDS[seed % len(KINDS)]
    rows = int(random.choice([0, 1, 2, 7, 40, 300], p=[0.03, 0.1, 0.2, 0.27, 0.3, 0.1]))
    width = int(random.choice([1, 2, 4, 9, 60], p=[0.1, 0.25, 0.4, 0.22, 0.03]))
    if kind == "csv":
        return _csv(random, rows, width, folder)
    makers = _RECORD_VALUES if kind == "tfrecord" else _JSON_VALUES if kind in ("jsonl", "sql") else _VALUES
    names = (
        [f"c{number}" for number in range(width)] if kind in ("sql", "tfrecord") else _names(random, width)
    )
    columns = {name: _with_gaps(random, makers, rows, kind) for name in dict.fromkeys(names)}
    case: Case = _WRITERS[kind](columns, folder, random)
    return case


def _text(random: Any, longest: int = 12, breaks: bool = True) -> str:
    letters = _LETTERS + (_BREAKS if breaks and random.random() < 0.3 else [])
    if random.random() < 0.02:
        longest = 5_000
    return "".join(random.choice(letters, int(random.integers(0, longest + 1))))


def _names(random: Any, width: int) -> list[str]:
    """Headers: mostly plain, sometimes odd."""
    if random.random() < 0.7:
        return [f"c{number}" for number in range(width)]
    return [f"{_text(random, 4, breaks=False)}{number}" for number in range(width)]


def _day(random: Any) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(
        seconds=int(random.integers(-(10**9), 4 * 10**9))
    )


def _whole(random: Any) -> int:
    return int(random.integers(-(10 ** int(random.integers(1, 18))), 10 ** int(random.integers(1, 18))))


# What a cell of a CSV file may be.
_CELLS: list[Any] = [
    lambda r: str(_whole(r)),
    lambda r: repr(float(np.round(r.normal(0, 100), int(r.integers(0, 9))))),
    lambda r: f"{r.normal():.{int(r.integers(1, 17))}e}",
    lambda r: str(r.choice(_NUMBERS)).format(int(r.integers(0, 1000))),
    lambda r: str(r.choice(["true", "false"])),
    lambda r: str(r.choice(["True", "False", "TRUE"])),
    lambda r: str(r.choice(["yes", "no", "maybe"])),
    lambda r: _text(r),
    lambda r: _text(r, 60),
    lambda r: f"{_text(r, 3)}\r{_text(r, 3)}",
    lambda r: _day(r).strftime("%Y-%m-%d"),
    lambda r: _day(r).strftime(str(r.choice(_DATES))),
    lambda r: "",
]
_VALUES: list[Any] = [
    _whole,
    lambda r: float(r.normal() * 10.0 ** int(r.integers(-30, 30))),
    lambda r: bool(r.integers(2)),
    lambda r: _text(r),
    lambda r: str(r.choice(["red", "green", "blue"])),
    _day,
    lambda r: _day(r).date(),
    lambda r: decimal.Decimal(int(r.integers(-(10**9), 10**9))).scaleb(-3),
    lambda r: None,
]
_JSON_VALUES = [*_VALUES[:5], _VALUES[8]]
_RECORD_VALUES: list[Any] = [_whole, lambda r: float(np.float32(r.normal())), lambda r: _text(r).encode()]


def _with_gaps(random: Any, makers: list[Any], rows: int, kind: str) -> list[Any]:
    maker, gaps = makers[int(random.integers(len(makers)))], random.random() * 0.4 * (random.random() < 0.3)
    empty = kind != "tfrecord"
    return [None if empty and random.random() < gaps else maker(random) for _ in range(rows)]


def _cells(random: Any, rows: int) -> list[str]:
    maker = _CELLS[int(random.integers(len(_CELLS)))]
    cells = [maker(random) for _ in range(rows)]
    if random.random() < 0.25:
        cells = ["" if random.random() < 0.2 else cell for cell in cells]
    if random.random() < 0.15:
        odd, share = str(random.choice(_ODD)), random.choice([0.02, 0.3])
        cells = [odd if random.random() < share else cell for cell in cells]
    return cells


def _csv(random: Any, rows: int, width: int, folder: Path) -> Case:
    sep, end = str(random.choice([",", ",", ";", "\t", "|"])), str(random.choice(["\n", "\n", "\r\n", "\r"]))
    encoding = str(random.choice(["utf8", "utf8", "utf8", "latin-1", "utf-16"]))
    columns = [_cells(random, rows) for _ in range(width)]
    buffer = io.StringIO(newline="")
    # With rows that end in a return, the writer leaves newlines in cells unquoted, which nobody can tell from rows.
    all_quoted = random.random() < 0.3 or end == "\r"
    quoting: Any = csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL
    writer = csv.writer(buffer, delimiter=sep, lineterminator=end, quoting=quoting)
    names = _names(random, width)
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
    text = buffer.getvalue()
    if random.random() < 0.2:
        text = text.removesuffix(end)
    elif random.random() < 0.1:
        text += end
    raw = text.encode(encoding, "replace")
    if encoding == "utf8" and random.random() < 0.15:
        raw = b"\xef\xbb\xbf" + raw
    packed = random.random() < 0.1
    path = folder / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(raw) if packed else raw)
    written = {
        name: [cell.encode(encoding, "replace").decode(encoding) for cell in cells]
        for name, cells in zip(names, columns, strict=True)
    }
    return Case("csv", path, {"sep": sep, "encoding": encoding}, written)


def _parquet(columns: dict[str, list[Any]], folder: Path, random: Any) -> Case:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: _typed(values, random) for name, values in columns.items()})
    pq.write_table(
        table,
        folder / "t.parquet",
        row_group_size=int(random.choice([3, 1000])),
        compression=str(random.choice(["snappy", "zstd", "none"])),
        use_dictionary=bool(random.integers(2)),
    )
    return Case("parquet", folder / "t.parquet", columns=_listed(table))


def _typed(values: list[Any], random: Any) -> Any:
    """An Arrow array of one of the types that can hold these values."""
    import pyarrow as pa

    array = pa.array(values)
    if pa.types.is_int64(array.type):
        array = pa.array([None if value is None else value % 100 for value in values])
        choice = [pa.int64(), pa.int8(), pa.uint8(), pa.int32(), pa.uint64(), pa.float32()]
        return array.cast(choice[int(random.integers(len(choice)))])
    if pa.types.is_string(array.type):
        choice = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
        return array.cast(choice[int(random.integers(len(choice)))])
    if pa.types.is_timestamp(array.type):
        return array.cast(
            pa.timestamp(str(random.choice(["s", "ms", "us", "ns"])), random.choice([None, "UTC"]))
        )
    return array


def _listed(table: Any) -> dict[str, list[Any]]:
    return {name: table.column(name).to_pylist() for name in table.schema.names}


def _jsonl(columns: dict[str, list[Any]], folder: Path, random: Any) -> Case:
    lines = [
        json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=bool(random.integers(2)))
        for row in zip(*columns.values(), strict=True)
    ]
    (folder / "t.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Case("jsonl", folder / "t.jsonl", columns=columns)


def _pandas(columns: dict[str, list[Any]], folder: Path, random: Any) -> Case:
    import pandas as pd

    frame = pd.DataFrame(columns)
    if random.random() < 0.3:
        frame = frame.convert_dtypes()
    frame.index = pd.Index(random.integers(0, 3, len(frame)))
    return Case("pandas", frame, columns=columns)


def _polars(columns: dict[str, list[Any]], folder: Path, random: Any) -> Case:
    import polars

    return Case("polars", polars.DataFrame(columns, strict=False), columns=columns)


def _sql(columns: dict[str, list[Any]], folder: Path, random: Any) -> Case:
    marks = ", ".join("?" * len(columns))
    with sqlite3.connect(folder / "t.db") as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(columns)})")
        connection.executemany(f"INSERT INTO t VALUES ({marks})", zip(*columns.values(), strict=True))
    connection.close()
    whole = {
        name: [int(value) if isinstance(value, bool) else value for value in values]
        for name, values in columns.items()
    }
    return Case("sql", folder / "t.db", columns=whole)


def _tfrecord(columns: dict[str, list[Any]], folder: Path, random: Any) -> Case:
    import tensorflow as tf

    features = {
        int: lambda value: tf.train.Feature(int64_list=tf.train.Int64List(value=[value])),
        float: lambda value: tf.train.Feature(float_list=tf.train.FloatList(value=[value])),
        bytes: lambda value: tf.train.Feature(bytes_list=tf.train.BytesList(value=[value])),
    }
    packed = random.random() < 0.3
    with tf.io.TFRecordWriter(str(folder / "t.tfrecord"), "GZIP" if packed else "") as writer:
        for row in zip(*columns.values(), strict=True):
            made = {name: features[type(value)](value) for name, value in zip(columns, row, strict=True)}
            writer.write(
                tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString(
                    deterministic=True
                )
            )
    return Case("tfrecord", folder / "t.tfrecord", columns=columns)


_WRITERS: dict[str, Any] = {
    "parquet": _parquet,
    "jsonl": _jsonl,
    "pandas": _pandas,
    "polars": _polars,
    "sql": _sql,
    "tfrecord": _tfrecord,
}
