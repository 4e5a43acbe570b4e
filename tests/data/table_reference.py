"""What pandas and polars say is in a table, against what a reader gives."""

from __future__ import annotations

import datetime
import gzip
import math
import re
from typing import Any

import numpy as np

import stoker
from stoker.errors import ArgumentError
from tests.data.frames import rows_of
from tests.data.random_tables import Case

_NUMBER = re.compile(r"[-+]?[\d.]+([eE][-+]?\d+)?")
_TICKS = {"days": 86_400 * 10**9, "seconds": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


class Refused(Exception):
    """The reader refused the table in one clear line."""


def check(case: Case) -> None:
    """Read a table and compare it.

    Raises:
        Refused: in one line.
        AssertionError: a wrong value, or a refusal of more than one line.
    """
    if case.kind == "tfrecord":
        inputs, dataset = _read(case)
        for name, values in case.columns.items():
            assert inputs[name].tolist() == values, name
        return
    inputs, dataset = _read(case)
    for name, feature in dataset.features.items():
        found = _plain(inputs[name], feature)
        references = (
            _csv_references(case, name, feature.kind) if case.kind == "csv" else _references(case, name)
        )
        assert any(_same(found, one) for one in references), (
            f"column {name!r} ({feature.kind}): {_difference(found, references)}"
        )


def _read(case: Case) -> tuple[dict[str, Any], Any]:
    reader = {"pandas": "frame", "polars": "frame"}.get(case.kind, case.kind)
    arguments = [case.data, "SELECT * FROM t ORDER BY rowid"] if case.kind == "sql" else [case.data]
    options = {**case.options, "batch_size": 512}
    if case.kind != "tfrecord":
        options["raw"] = True
    if case.kind in ("csv", "parquet", "jsonl", "tfrecord"):
        options["cache"] = False
    try:
        dataset = getattr(stoker.data, reader)(*arguments, **options)
    except ArgumentError as error:
        if "\n" in str(error):
            raise AssertionError("a refusal of several lines") from error
        raise Refused(str(error)) from error
    return rows_of(dataset)[0], dataset


def _plain(values: Any, feature: Any) -> list[Any]:
    """Numbers, truth values, text, nanoseconds since 1970; None for what is missing."""
    if feature.kind in ("category", "text"):
        return [value.decode() for value in values]
    gaps = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
    scale = _TICKS[feature.unit] if feature.kind == "date" else 1
    return [
        None if gap else bool(value) if feature.kind == "truth" else _number(value, scale)
        for value, gap in zip(values.tolist(), gaps, strict=True)
    ]


def _number(value: Any, scale: int) -> Any:
    return value if scale == 1 else int(value) * scale


def _references(case: Case, name: str) -> list[list[Any]]:
    """The values that were written."""
    return [[_expected(value) for value in case.columns[name]]]


def _expected(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return _ticks(value)
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days * _TICKS["days"]
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def _ticks(value: datetime.datetime) -> int:
    since = value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


def _csv_references(case: Case, name: str, kind: str) -> list[list[Any]]:
    """What was written, and what pandas and polars read in a column of a CSV file, for what our reader takes it for."""
    written = case.columns.get(name, []) if kind in ("category", "text") else []
    found = [written] if written else []
    if written and len(case.columns) == 1:
        # A blank line is no row.
        found.append([text for text in written if text != "\r"])
    for read in (_by_pandas, _by_pandas_rows_in_newlines, _by_polars):
        try:
            values = read(case, name, kind)
        except Exception:  # noqa: BLE001 - whatever the other library cannot read is no reference
            continue
        found.append(values)
    return found


def _by_pandas(case: Case, name: str, kind: str, **options: Any) -> list[Any]:
    import pandas as pd

    def read(**more: Any) -> Any:
        return pd.read_csv(
            case.data,
            sep=case.options["sep"],
            encoding=case.options["encoding"],
            index_col=False,
            **options,
            **more,
        )

    texts = read(dtype=str, keep_default_na=False)
    texts.columns = [str(one).removesuffix("\r") for one in texts.columns]
    if kind in ("category", "text"):
        plain = read()
        plain.columns = texts.columns
        demand_text(plain[name].dtype.kind in "OUT", texts[name].tolist())
        return list(texts[name])
    if kind == "date":
        return [_parsed(text) for text in texts[name]]
    values = read()
    values.columns = texts.columns
    return [None if pd.isna(value) else value for value in values[name].tolist()]


def _by_pandas_rows_in_newlines(case: Case, name: str, kind: str) -> list[Any]:
    return _by_pandas(case, name, kind, lineterminator="\n")


def demand_text(is_text: bool, texts: list[str]) -> None:
    """Nothing is text for our reader alone, but what is no number for pandas either, or a time of day."""
    assert is_text or not any(texts) or any(":" in text for text in texts)


def _parsed(text: str) -> int | None:
    if text in ("", "NA", "nan", "None"):
        return None
    return _ticks(datetime.datetime.fromisoformat(text.replace("Z", "")))


def _by_polars(case: Case, name: str, kind: str) -> list[Any]:
    import polars

    raw = case.data.read_bytes()
    raw = gzip.decompress(raw) if case.data.name.endswith(".gz") else raw
    raw = raw.decode(case.options["encoding"]).encode()
    texts = polars.read_csv(raw, separator=case.options["sep"], infer_schema=False)[name].to_list()
    texts = ["" if text is None else text for text in texts]
    if kind in ("category", "text"):
        return texts
    if kind == "date":
        return [_parsed(text) for text in texts]
    typed = polars.read_csv(raw, separator=case.options["sep"], infer_schema_length=None)[name]
    return list(typed.to_list())


def _same(found: list[Any], expected: list[Any]) -> bool:
    return len(found) == len(expected) and all(map(_equal, found, expected))


def _equal(one: Any, other: Any) -> bool:
    if other is None or (isinstance(other, float) and math.isnan(other)):
        return one is None or one == ""
    if isinstance(one, float) and isinstance(other, str) and _NUMBER.fullmatch(other.strip()):
        # With a whole number beyond int64 among decimals, pandas leaves the column as it is written.
        return one == float(other)
    if isinstance(one, str) and isinstance(other, str):
        # A return before the newline that ends the row belongs to either.
        return one in (other, other.removesuffix("\r"))
    if isinstance(one, str) or isinstance(other, str):
        return False
    if one is None:
        return False
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return math.isclose(float(one), float(other), rel_tol=1e-15, abs_tol=0.0) or float(one) == float(other)


def _difference(found: list[Any], references: list[list[Any]]) -> str:
    if not references:
        return "no reference can be read"
    expected = references[0]
    if len(found) != len(expected):
        return f"{len(found)} rows, not {len(expected)}"
    row = next(i for i, pair in enumerate(zip(found, expected, strict=True)) if not _equal(*pair))
    return f"row {row + 1}: {found[row]!r:.80}, not {expected[row]!r:.80}"
