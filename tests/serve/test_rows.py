"""Rows in any form people have them, as arrays in the order of the signature."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import numpy as np
import pytest

from stoker.errors import ArgumentError
from stoker.serve.rows import as_rows, as_tensors, check_shapes, refuse_booleans
from stoker.serve.signature import Field, TensorField

AGE = Field("age", "float32", (), "age", "number")
CITY = Field("city", "string", (), "city", "category")
DAY = Field("day", "int64", (), "day", "date", "days")
MAYBE = Field("day", "float64", (), "day", "date", "days")
COUNT = Field("count", "int32", (), "count", "whole")
PIXELS = Field("image", "uint8", (2, 2), "image")
VECTOR = Field("input", "float32", (3,), "input")


def arrays(fields: list[Field], rows: Any) -> list[Any]:
    return [one.tolist() for one in as_rows(fields, rows).arrays]


@pytest.mark.parametrize(
    "rows",
    [
        {"age": [1, 2], "city": ["Rome", "Oslo"]},
        [{"age": 1, "city": "Rome"}, {"city": "Oslo", "age": 2.0}],
        ([1, 2], ["Rome", "Oslo"]),
        {"age": np.array([1, 2], np.int32), "city": np.array(["Rome", "Oslo"])},
    ],
)
def test_rows_are_the_same_in_every_form(rows: Any) -> None:
    assert arrays([AGE, CITY], rows) == [[1.0, 2.0], ["Rome", "Oslo"]]
    assert not as_rows([AGE, CITY], rows).alone


def test_pandas_frames_may_have_more_columns() -> None:
    check_frames(pytest.importorskip("pandas"))


def test_polars_frames_may_have_more_columns() -> None:
    check_frames(pytest.importorskip("polars"))


def check_frames(frames: Any) -> None:
    frame = frames.DataFrame({"price": [9, 9], "city": ["Rome", "Oslo"], "age": [1, 2]})
    assert arrays([AGE, CITY], frame) == [[1.0, 2.0], ["Rome", "Oslo"]]
    with pytest.raises(ArgumentError, match="the frame has no column 'count'"):
        as_rows([AGE, COUNT], frame)
    numbers = frames.DataFrame({"a": [1, 4], "b": [2, 5], "c": [3, 6]})
    assert arrays([VECTOR], numbers) == [[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]


def test_one_row_alone() -> None:
    one = as_rows([AGE, CITY], {"age": 5, "city": "Rome"})
    assert one.alone
    assert one.count == 1
    assert as_rows([VECTOR], [1, 2, 3]).alone
    assert as_rows([Field("text", "string", (), "text")], "a text").alone


def test_whole_numbers_are_numbers_and_numbers_without_a_fraction_whole() -> None:
    (found,) = as_rows([VECTOR], np.array([[1, 2, 3]], np.int32)).arrays
    assert found.dtype == np.float32
    assert arrays([COUNT], {"count": [1.0, 2.0]}) == [[1, 2]]
    assert arrays([AGE], {"age": [True, None]})[0][0] == 1.0
    assert arrays([PIXELS], [[0, 255], [1, 2]]) == [[[[0, 255], [1, 2]]]]


def test_what_is_missing_and_what_is_a_date() -> None:
    assert arrays([CITY], {"city": ["Rome", None]}) == [["Rome", "[UNK]"]]
    # Where the training file could not tell missing from empty.
    bare = dataclasses.replace(CITY, missing="")
    assert arrays([bare], {"city": ["Rome", None, float("nan"), ""]}) == [["Rome", "", "", ""]]
    assert np.isnan(arrays([AGE], {"age": [None, 1.0]})[0][0])
    assert np.isnan(arrays([MAYBE], {"day": ["1970-01-11", None]})[0][1])
    for given in (
        ["1970-01-11"],
        [datetime.date(1970, 1, 11)],
        np.array(["1970-01-11"], "datetime64[s]"),
        [10],
    ):
        assert arrays([DAY], {"day": given}) == [[10]]


def test_bytes_keep_their_zeros() -> None:
    assert arrays([Field("raw", "string", (), "raw")], [b"a\0", b"\0\0"]) == [[b"a\0", b"\0\0"]]


@pytest.mark.parametrize(
    ("fields", "rows", "line"),
    [
        ([AGE], {"age": "old"}, "'age': expected float32, got 'old'"),
        ([AGE], {"age": ["1", "x"]}, "'age': expected float32, got '1'"),
        ([AGE], {"age": [{}]}, "'age': expected float32, got {}"),
        ([COUNT], {"count": [1.5]}, "'count': expected int32, got 1.5"),
        ([COUNT], {"count": [None, float("nan")]}, "'count': expected int32, got None"),
        ([COUNT], {"count": [1, None, float("inf")]}, "'count': expected int32, got None"),
        ([COUNT], {"count": [float("nan"), 2**70]}, "'count': expected int32, got nan"),
        ([DAY], {"day": ["NaT"]}, "'day': expected int64, got 'NaT'"),
        ([DAY], {"day": ["2024-01-01", "nat"]}, "'day': expected int64, got 'nat'"),
        ([DAY], {"day": [""]}, "'day': expected int64, got ''"),
        ([DAY], {"day": ["today"]}, "'day': expected int64, got 'today'"),
        ([DAY], {"day": ["2024-01-01", None]}, "'day': expected int64, got None"),
        ([DAY], {"day": np.array(["NaT"], "datetime64[D]")}, "'day': expected int64, got None"),
        ([MAYBE], {"day": ["NaT"]}, "'day': expected float64, got 'NaT'"),
        ([COUNT], {"count": [2**31]}, "'count': expected int32, got 2147483648"),
        ([COUNT], {"count": [2**70]}, f"'count': expected int32, got {2**70}"),
        ([COUNT], {"count": [None]}, "'count': expected int32, got None"),
        ([COUNT], {"count": [float("nan")]}, "'count': expected int32, got nan"),
        ([VECTOR], [[1, 2, None]], r"'input': expected float32, got null \(None\): the model has no rule for missing"),
        ([VECTOR], {"input": [[None, None, None]]}, "'input': expected float32, got null"),
        ([PIXELS], [[0, 256], [0, 0]], "'image': expected uint8, got 256"),
        ([CITY], {"city": [3]}, "'city': expected string, got 3"),
        ([AGE], {"age": [[[1, 2], [3, 4]]]}, r"'age': the input takes one value per row, got an array of"),
        ([VECTOR], [[1, 2]], r"'input': a row has shape \[3\], got \[2\]"),
        ([VECTOR], [[1, 2, 3], [1, 2]], "'input': the rows differ in shape"),
        ([AGE, CITY], {"age": 1}, "there is no value for 'city': the inputs are age float32, city string"),
        ([AGE], {"age": 1, "height": 2}, "there is no input 'height'"),
        ([AGE, CITY], {"age": [1], "city": "Rome"}, "some inputs are one row and others several"),
        ([AGE, CITY], {"age": [1, 2], "city": ["Rome"]}, r"different numbers of rows: age \[2\], city \[1\]"),
        ([AGE, CITY], [{"age": 1, "city": "a"}, {"age": 1}], "row 2 has no value for 'city'"),
        ([AGE, CITY], [{"age": 1, "city": "a"}, {"age": 1, "city": "a", "x": 1}], "row 2 has 'x', which is not an"),
        ([AGE, CITY], [{"age": 1, "city": "a"}, 7], "row 2 must be a dict"),
        ([AGE, CITY], 7, "rows of several inputs must be dicts with age float32, city string; got int"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(fields: list[Field], rows: Any, line: str) -> None:
    with pytest.raises(ArgumentError, match=line) as caught:
        as_rows(fields, rows)
    assert "\n" not in str(caught.value)


def test_requests_have_no_booleans_for_numbers_except_in_columns() -> None:
    flag = Field("flag", "bool", (), "flag")
    for given in ([[1, 2, 3], [1, 2, True]], {"input": [[False, 2, 3]]}, [{"input": [1, True, 3]}]):
        with pytest.raises(ArgumentError, match=r"'input': expected float32, got (True|False)"):
            refuse_booleans([VECTOR], given)
    for array in (np.array([[True] * 3]), np.array([[1, 2, True]], object)):
        with pytest.raises(ArgumentError, match="'input': expected float32, got True"):
            refuse_booleans([VECTOR], {"input": array})
    refuse_booleans([VECTOR], [[1, 0, 2.5]])
    refuse_booleans([flag, CITY], {"flag": [True], "city": ["true"]})
    refuse_booleans([AGE], {"age": [True]})


def test_lists_of_numbers_are_taken_as_they_come_and_nothing_else_is() -> None:
    field = (Field("x", "float32", (2,), "x"),)
    for given in ([[1, 2], [3, 4]], {"x": [[1.0, 2], [3, 4]]}, [[True, 2], [3.0, 4]]):
        found = as_rows(field, given)
        assert found.arrays[0].dtype == np.float32
        assert (found.arrays[0].shape, found.alone) == ((2, 2), False)
    assert as_rows(field, [1, 2]).alone
    wrongs: list[Any] = [[["1", "2"]], [[1, 2, 3]], [[1], [1, 2]], [[None, {}]]]
    for wrong in wrongs:
        with pytest.raises(ArgumentError):
            as_rows(field, wrong)
    alone = as_rows((Field("x", "float32", (), "x"),), np.array(1.0, np.float32))
    assert (alone.count, alone.alone) == (1, True)


def test_a_declared_scalar_is_not_checked_because_old_exporters_declare_nothing_else() -> None:
    for declared, fits in (((), True), ((None,), True), ((2,), False)):
        fields = (TensorField("x", "float32", (), "x", declared=declared),)
        rows = as_tensors(fields, {"x": [1.0]}, joins=False)
        if fits:
            check_shapes(fields, rows, any_rows=False)
        else:
            with pytest.raises(ArgumentError, match=r"shape \[2\], got \[1\]"):
                check_shapes(fields, rows, any_rows=False)
