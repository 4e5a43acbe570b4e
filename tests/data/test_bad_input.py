"""Bad input: one line that says what was wrong, with which value, and what to do."""

from __future__ import annotations

import gzip
import re
import sqlite3
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker.errors import ArgumentError
from tests.data.frames import mixed

# The readers load it when they are used.
pytestmark = pytest.mark.tensorflow


def test_texts_among_numbers_are_counted_and_their_remedy_named(tmp_path: Path) -> None:
    numbers = [str(number) for number in range(1_200_000)]
    for row in (5, 30, 1_000_000, 1_100_000):
        numbers[row] = "?"
    numbers[40] = "n.a."
    text = "a\n" + "\n".join(numbers)
    assert (
        "row 6: '?' in column a is not a number, as most of its values are (3 such cells in the first"
        in _csv(tmp_path, text)
    )
    for row in (5, 30, 40):
        numbers[row] = "1"
    message = _csv(tmp_path, "a\n" + "\n".join(numbers))
    assert "row 1,000,001: '?' in column a is not a whole number" in message
    assert "(2 such cells): take them as missing with missing='?'" in message
    assert stoker.data.csv(tmp_path / "t.csv", missing="?").features["a"].missing == 2


def test_gaps_that_make_a_category_of_numbers_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{n if n % 3 else '?'},x\n" for n in range(60)))
    with pytest.warns(
        stoker.data.DataWarning, match="20 cells are not numbers, the first is '\\?' in row 1"
    ) as told:
        dataset = stoker.data.csv(tmp_path / "t.csv")
    assert dataset.features["a"].kind == "category"
    assert "missing='?'" in str(told[0].message)
    assert stoker.data.csv(tmp_path / "t.csv", missing="?").features["a"].kind == "whole"
    for options in ({"types": {"a": "category"}}, {"columns": ["b"]}, {"raw": True}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            stoker.data.csv(tmp_path / "t.csv", **options)


@pytest.mark.parametrize("missing", [5, ["?", 5]])
def test_what_cannot_stand_for_a_missing_value(tmp_path: Path, missing: Any) -> None:
    assert "must be a string that stands for a missing value" in _csv(tmp_path, "a,b\n1,2\n", missing=missing)


def test_whole_numbers_beyond_int64_are_not_rounded_in_silence(tmp_path: Path) -> None:
    text = f"a,b\n1,x\n{2**64 - 1},y\n"
    for raw in (False, True):
        message = _csv(tmp_path, text, raw=raw)
        assert f"{2**64 - 1} in column a is too large for int64" in message
    dataset = stoker.data.csv(tmp_path / "t.csv", types={"a": "category"})
    assert str(2**64 - 1) in dataset.features["a"].vocabulary
    assert stoker.data.csv(tmp_path / "t.csv", types={"a": "number"}).rows == 2


def test_a_quote_that_is_not_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "a closing quote is probably missing" in _csv(tmp_path, 'a,b\n"x,1\ny,2\n')
    monkeypatch.setattr("stoker.data.ingest.LARGEST_BLOCK", 1 << 22)
    message = _csv(tmp_path, 'a,b\n"x,1\n' + "y,2\n" * 4_000_000)
    assert "has a row longer than 4 MB: a closing quote is probably missing" in message


def _csv(tmp_path: Path, text: str, **options: Any) -> str:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ArgumentError) as caught:
        stoker.data.csv(tmp_path / "t.csv", **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_no_such_path(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="there is no file or folder"):
        stoker.data.csv(tmp_path / "none.csv")
    with pytest.raises(ArgumentError, match="no file matches"):
        stoker.data.csv(f"{tmp_path}/*.csv")


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArgumentError, match="holds no file that ends in"):
        stoker.data.parquet(tmp_path / "empty")
    with pytest.raises(
        ArgumentError, match=r"holds no file that ends in \.csv, \.csv\.\w+, .*\.\w+ or \.\S+$"
    ):
        stoker.data.csv(tmp_path / "empty")


def test_an_empty_file_and_one_without_rows(tmp_path: Path) -> None:
    assert "is empty" in _csv(tmp_path, "")
    assert "has no rows" in _csv(tmp_path, "a,b\n")


def test_a_label_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    assert "did you mean 'price'?" in _csv(tmp_path, "size,price\n1,2\n", label="prize")
    assert "did you mean 'Price'?" in _csv(tmp_path, "size,Price\n1,2\n", label="PRICE")
    assert "the columns are size, price" in _csv(tmp_path, "size,price\n1,2\n", label="zzz")


def test_a_class_with_one_example_is_said(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,k\n1,x\n2,x\n3,lonely\n")
    with pytest.warns(stoker.data.DataWarning, match="'lonely' of k has a single example"):
        stoker.data.csv(tmp_path / "t.csv", label="k")


def test_mixed_types_name_the_row_and_the_value(tmp_path: Path) -> None:
    rows = ["5,1"] * 1_200_000
    rows[1_150_000] = "twelve,1"
    message = _csv(tmp_path, "a,b\n" + "\n".join(rows))
    assert "row 1,150,001: 'twelve' in column a is not a whole number" in message
    assert "types={'a': 'category'}" in message


def test_text_among_numbers_at_the_beginning_makes_no_category_of_them(tmp_path: Path) -> None:
    text = "a,b\n" + "".join(f"{n},x\n" for n in range(50)) + "?,y\n"
    message = _csv(tmp_path, text)
    assert "row 51: '?' in column a is not a number, as most of its values are (1 such cell)" in message
    assert "take it as missing with missing='?'" in message
    for options in ({"types": {"a": "category"}}, {"columns": ["b"]}, {"raw": True}):
        assert stoker.data.csv(tmp_path / "t.csv", **options).rows == 51


def test_a_whole_number_beyond_int64(tmp_path: Path) -> None:
    message = _csv(tmp_path, "a,b\n" + "5,1\n" * 1_200_000 + f"{2**64},1\n")
    assert f"{2**64} in column a is too large for int64" in message


def test_large_whole_numbers_with_gaps_would_be_rounded(tmp_path: Path) -> None:
    message = _csv(tmp_path, f"a,b\n{2**60 + 1},1\n,2\n")
    assert "beyond 2**53" in message


def test_rows_of_different_lengths(tmp_path: Path) -> None:
    assert "a row has 1 field where the header has 2: 3" in _csv(tmp_path, "a,b\n1,2\n3\n")


def test_another_separator_is_guessed_at(tmp_path: Path) -> None:
    assert "sep=';'" in _csv(tmp_path, "a;b\n1;2\n")
    assert "sep=';'" in _csv(tmp_path, "a;b\n1,5;2\n")


def test_of_a_long_row_the_beginning_is_shown_as_a_terminal_can_show_it(tmp_path: Path) -> None:
    message = _csv(tmp_path, "a,b\n1,2\n\x1b[2J" + "x" * 500 + "\n")
    assert message.endswith("?[2J" + "x" * 56 + "...")


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    assert "two columns called 'a'" in _csv(tmp_path, "a,a\n1,2\n")


def test_a_wrong_encoding(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,b\nüber,1\n".encode("latin-1"))
    for types in (None, {"a": "category"}):
        with pytest.raises(ArgumentError, match="encoding='latin-1'"):
            stoker.data.csv(tmp_path / "t.csv", types=types)


@pytest.mark.parametrize(
    "content",
    [bytes(range(256)) * 200, b"PK\x03\x04\0\0" + b"a,b\n" * 99, "a,b\n1,2\n".encode("utf-16")],
    ids=["bytes", "zip", "utf-16"],
)
def test_what_is_no_text(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ArgumentError) as caught:
        stoker.data.csv(tmp_path / "t.csv")
    assert re.search(r"is not (UTF-8 )?text", str(caught.value))
    assert str(caught.value).isprintable()


def test_a_word_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"t": "good \\u0000 text", "k": 1}\n{"t": "bad", "k": 0}\n' * 9)
    with pytest.raises(ArgumentError, match="remove the NUL characters"):
        stoker.data.text(tmp_path / "t.jsonl", column="t", label="k", max_tokens=50)


def test_many_classes_with_one_example_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,k\n" + "".join(f"{n},c{n % 7}\n" for n in range(10)))
    with pytest.warns(stoker.data.DataWarning) as caught:
        stoker.data.csv(tmp_path / "t.csv", label="k")
    assert [str(one.message) for one in caught] == [
        "class 'c3' of k has a single example, and so have 3 more: it can be used for training or testing, not both"
    ]


def test_files_with_other_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x,z\n1,2\n")
    with pytest.raises(ArgumentError, match=r"b.csv has no column 'y', but .*a.csv has"):
        stoker.data.csv(tmp_path)


def test_missing_labels_name_the_first_row(tmp_path: Path) -> None:
    assert "2 rows have no label (y), the first is row 2" in _csv(tmp_path, "a,y\n1,1.5\n2,\n3,\n", label="y")


def test_a_truncated_parquet_file(tmp_path: Path) -> None:
    mixed(2000).to_parquet(tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ArgumentError, match="is not a complete Parquet file"):
        stoker.data.parquet(tmp_path / "t.parquet")


def test_columns_of_lists_are_refused_if_they_are_wanted(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.table({"a": [1, 2], "l": [[1], [2, 3]]})
    with pytest.raises(ArgumentError, match=r"column l holds list.*columns="):
        stoker.data.frame(table)
    assert list(stoker.data.frame(table, columns=["a"]).features) == ["a"]


def test_mixed_types_in_a_frame_and_a_query(tmp_path: Path) -> None:
    import pandas as pd

    with pytest.raises(ArgumentError, match="the DataFrame, row 2: 'two' in column a is str"):
        stoker.data.frame(pd.DataFrame({"a": [1, "two"]}))
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(1,), ("two",)])
    with pytest.raises(ArgumentError, match="row 2: 'two' in column a is str"):
        stoker.data.sql(tmp_path / "t.db", "SELECT a FROM t")


def test_queries_that_fail(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "t.db").close()
    (tmp_path / "t.db").touch()
    with pytest.raises(ArgumentError, match="no such table"):
        stoker.data.sql(tmp_path / "t.db", "SELECT * FROM absent")
    with pytest.raises(ArgumentError, match="there is no SQLite file"):
        stoker.data.sql(tmp_path / "none.db", "SELECT 1")


def test_broken_json(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(ArgumentError, match=r"t\.jsonl"):
        stoker.data.jsonl(tmp_path / "t.jsonl")
    (tmp_path / "u.jsonl").write_text('{"a": 1}\n{"a": "x"}\n')
    with pytest.raises(ArgumentError, match=r"u\.jsonl, row 2: column a changes from number to string"):
        stoker.data.jsonl(tmp_path / "u.jsonl")
    (tmp_path / "v.jsonl").write_text('{"a": 1}\n' * 600_000 + '{"a": "x"}\n')
    with pytest.raises(ArgumentError, match=r"v\.jsonl, row 600,001: 'x' in column a is not a whole number"):
        stoker.data.jsonl(tmp_path / "v.jsonl")
    (tmp_path / "w.jsonl").write_text('{"a": 1}\n' * 600_000 + '{"a": 1, "late": 2}\n')
    with pytest.raises(ArgumentError, match="unexpected field"):
        stoker.data.jsonl(tmp_path / "w.jsonl")
    assert stoker.data.jsonl(tmp_path / "w.jsonl", columns=["a"]).rows == 600_001


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size=0 must be at least 1"),
        ({"batch_size": 1.5}, "whole number"),
        ({"validation_split": 1.5}, "between 0 and 1"),
        ({"validation_split": 0.001}, "leaves one of the two parts empty"),
        ({"shard": (2, 2)}, "index must lie between 0 and 1"),
        ({"shard": 3}, "must be (index, count)"),
        ({"columns": ["nope"]}, "no column 'nope'"),
        ({"types": {"a": "integer"}}, "must be one of number"),
        ({"label": "a", "label_mode": "classes"}, "must be one of auto"),
    ],
)
def test_arguments_that_make_no_sense(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    assert words in _csv(tmp_path, "a,b\n1,2\n2,3\n3,4\n", **options)


def test_arrays_that_do_not_fit_together() -> None:
    with pytest.raises(ArgumentError, match="different numbers of rows"):
        stoker.data.arrays(np.zeros(3), np.zeros(4))
    with pytest.raises(ArgumentError, match="the arrays have no rows"):
        stoker.data.arrays(np.zeros(0))
    with pytest.raises(ArgumentError, match="arrays of numbers"):
        stoker.data.arrays(np.array(["a"]))


@pytest.mark.parametrize("reader", ["csv", "jsonl"])
def test_compressed_files_that_are_damaged(reader: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{reader}.gz"
    row = '{"a": 1, "b": 2}\n' if reader == "jsonl" else "a,b\n"
    whole = gzip.compress("".join(row.replace("1", str(n**3)) for n in range(5000)).encode())
    for content in (b"no gzip " * 100, whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(
            ArgumentError, match=r"t\.\w+\.gz cannot be unpacked .*create or copy it again"
        ) as caught:
            getattr(stoker.data, reader)(path)
        assert "\n" not in str(caught.value)


def test_what_is_json_but_no_json_lines(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('[{"a": 1}, {"a": 2}]')
    with pytest.raises(ArgumentError, match=r"holds a JSON array, not JSON lines \(one object per line\)"):
        stoker.data.jsonl(tmp_path / "t.json")
    (tmp_path / "t.json").write_text("name\nvalue\n")
    with pytest.raises(ArgumentError, match=r"t\.json, row 1 cannot be read as JSON .*one object per line"):
        stoker.data.jsonl(tmp_path / "t.json")


def test_an_empty_text_is_no_class_but_a_value_of_a_column(tmp_path: Path) -> None:
    text = "a,y\nx,yes\n,no\ny,\n,yes\nx, \n"
    assert "2 rows have no label (y), the first is row 3" in _csv(tmp_path, text, label="y")
    assert "row 2 has no label (y): fill it in or leave it out" in _csv(tmp_path, "a,y\n1,k\n2,\n", label="y")
    (tmp_path / "t.csv").write_text(text.replace("y,\n", "y,no\n").replace("x, \n", "x,no\n"))
    assert "" in stoker.data.csv(tmp_path / "t.csv", label="y").features["a"].vocabulary


def test_what_is_missing_among_numbers_is_not_named_as_the_text_among_them(tmp_path: Path) -> None:
    numbers = "".join(f"{n}.5\n" for n in range(60))
    message = _csv(tmp_path, "b,a\n" + "".join(f"1,{one}\n" for one in ["inf", "N/A", "-", *numbers.split()]))
    assert "row 3: '-' in column a is not a number" in message
    (tmp_path / "t.csv").write_text("a,b\n" + "NA,1\n" * 60 + "x,1\n")
    assert stoker.data.csv(tmp_path / "t.csv").features["a"].kind == "category"


@pytest.mark.parametrize("sep", [";;", "", "\n", '"', "é", None])
def test_what_cannot_separate_fields(sep: Any, tmp_path: Path) -> None:
    assert "sep=" in _csv(tmp_path, "a,b\n1,2\n", sep=sep)


def test_json_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(b'{"a": "\xff"}\n' * 3)
    with pytest.raises(ArgumentError, match=r"t\.jsonl holds text that is not UTF-8"):
        stoker.data.jsonl(tmp_path / "t.jsonl")


def test_whole_numbers_of_json_beyond_int64_are_not_rounded_in_silence(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(f'{{"a": 1}}\n{{"a": {2**64 - 1}}}\n')
    with pytest.raises(ArgumentError, match=f"row 2: {2**64 - 1} in column a is too large for int64"):
        stoker.data.jsonl(tmp_path / "t.jsonl")
    assert stoker.data.jsonl(tmp_path / "t.jsonl", types={"a": "number"}).rows == 2
    (tmp_path / "t.jsonl").write_text('{"a": 1.5}\n{"a": 1e30}\n')
    assert stoker.data.jsonl(tmp_path / "t.jsonl").rows == 2
