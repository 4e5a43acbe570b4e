"""Columns of frames that Arrow does not take as they are: right values, or one line that names the column."""

from __future__ import annotations

import datetime
import decimal
import fractions
from typing import Any

import numpy as np
import pytest

import stoker
from stoker.errors import ArgumentError
from tests.data.frames import rows_of

# The readers load it when they are used.
pytestmark = pytest.mark.tensorflow


def _unfit() -> dict[str, Any]:
    import pandas as pd

    return {
        "complex numbers": np.array([1 + 2j, 3]),
        "complex objects": [1j, 2j],
        "periods": pd.period_range("2020-01", periods=2, freq="M"),
        "intervals": pd.arrays.IntervalArray.from_breaks([0, 1, 2]),
        "categories of intervals": pd.cut([1, 5], [0, 3, 6]),
        "timedeltas": pd.to_timedelta([1, 2], unit="s"),
        "long doubles": np.array([1.5, 2], np.longdouble),
        "lists": [[1], [2, 3]],
        "dicts": [{"a": 1}, {"b": 2}],
        "mixed objects": [1, "a"],
        "truth and numbers": [True, 1],
        "large numbers": [2**70, 1],
        "bytes": [b"a", b"\xff"],
        "times": [datetime.time(1, 2), datetime.time(3, 4)],
        "fractions": [fractions.Fraction(1, 2)] * 2,
    }


@pytest.mark.parametrize("what", sorted(_unfit()) if pytest.importorskip("pandas") else [])
def test_a_column_that_fits_no_table_is_named_and_refused_only_if_wanted(what: str) -> None:
    import pandas as pd

    frame = pd.DataFrame({"plain": [1, 2], "odd one": _unfit()[what]})
    with pytest.raises(ArgumentError, match="column odd one") as caught:
        stoker.data.frame(frame)
    assert "\n" not in str(caught.value)
    inputs, _ = rows_of(stoker.data.frame(frame, columns=["plain"]))
    assert inputs["plain"].tolist() == [1, 2]


def test_sparse_decimal_and_nullable_columns_have_their_values() -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {
            "sparse": pd.arrays.SparseArray([0.0, 1.5]),
            "whole": pd.arrays.SparseArray([0, 3]),
            "decimal": [decimal.Decimal("1.5"), decimal.Decimal("2.25")],
            "small": np.array([1.5, 2], np.float16),
        }
    )
    inputs, _ = rows_of(stoker.data.frame(frame, raw=True))
    assert {name: values.tolist() for name, values in inputs.items()} == {
        "sparse": [0.0, 1.5],
        "whole": [0, 3],
        "decimal": [1.5, 2.25],
        "small": [1.5, 2.0],
    }


def test_names_of_columns() -> None:
    import pandas as pd

    for names in (["a", "a"], [0, "0"]):
        with pytest.raises(ArgumentError, match=r"the DataFrame has two columns called '[a0]': rename one"):
            stoker.data.frame(pd.DataFrame([[1, 2]], columns=names))
    levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]))
    inputs, _ = rows_of(stoker.data.frame(levels))
    assert {name: value.tolist() for name, value in inputs.items()} == {"('a', 'b')": [1], "('a', 'c')": [2]}
    assert list(stoker.data.frame({1: [5, 6]}).features) == ["1"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"a": 1}, "column a of the dict is int: give a list"),
        ({"a": [1, 2], "b": [1]}, "column b of the dict has 1 value where a has 2"),
        ([1, 2], "give a pandas or polars frame"),
    ],
)
def test_what_is_no_frame(data: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        stoker.data.frame(data)


def test_texts_stand_for_missing_values_in_frames_and_queries(tmp_path: Any) -> None:
    import sqlite3

    import pandas as pd

    frame = pd.DataFrame({"a": [1, "?", 2.5], "b": ["x", "?", "x"]})
    with pytest.raises(ArgumentError, match=r"row 2: '\?' in column a is str.*missing='\?'"):
        stoker.data.frame(frame)
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t (a, b)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", frame.to_numpy().tolist())
    for dataset in (
        stoker.data.frame(frame, missing="?"),
        stoker.data.sql(tmp_path / "t.db", "SELECT * FROM t", missing=["?"]),
    ):
        inputs, _ = rows_of(dataset)
        assert np.array_equal(inputs["a"], [1, np.nan, 2.5], equal_nan=True)
        assert inputs["b"].tolist() == [1, 0, 1]


def test_texts_stand_for_missing_values_in_parquet_and_json_lines(tmp_path: Any) -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": ["1", "?", "2"], "b": ["x", "?", "x"]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    for dataset in (
        stoker.data.parquet(tmp_path / "t.parquet", missing="?", types={"a": "number"}),
        stoker.data.jsonl(tmp_path / "t.jsonl", missing="?"),
    ):
        inputs, _ = rows_of(dataset)
        assert inputs["b"].tolist() == [1, 0, 1]
    dataset = stoker.data.parquet(tmp_path / "t.parquet", missing="?", types={"a": "number"})
    assert np.array_equal(rows_of(dataset)[0]["a"], [1, np.nan, 2], equal_nan=True)
