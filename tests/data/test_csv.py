"""CSV files against pandas: the same rows, values and labels."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker.errors import ArgumentError
from tests.data.frames import mixed, rows_of, words

# The readers load it when they are used.
pytestmark = pytest.mark.tensorflow


def test_every_kind_of_column_has_the_values_pandas_reads(tmp_path: Path) -> None:
    frame = mixed()
    frame.to_csv(tmp_path / "t.csv", index=False)
    dataset = stoker.data.csv(tmp_path / "t.csv", label="kind", batch_size=64)
    inputs, labels = rows_of(dataset)
    assert {name: value.dtype.name for name, value in inputs.items()} == {
        "id": "int64",
        "weight": "float32",
        "count": "int64",
        "colour": "int32",
        "day": "int64",
        "sold": "float32",
        "note": "object",
    }
    for name in ("id", "count"):
        assert np.array_equal(inputs[name], frame[name])
    assert np.array_equal(inputs["weight"], frame["weight"].to_numpy(np.float32))
    assert np.array_equal(inputs["sold"], frame["sold"].to_numpy(np.float32))
    assert np.array_equal(inputs["day"], frame["day"].astype("datetime64[s]").astype(np.int64) // 86400)
    vocabulary = dataset.features["colour"].vocabulary
    assert [vocabulary[i] for i in inputs["colour"]] == frame["colour"].tolist()
    assert words(inputs["note"]) == frame["note"].tolist()
    assert [dataset.class_names[i] for i in labels] == frame["kind"].tolist()
    assert dataset.class_names == ["cat", "dog", "eel"]
    assert dataset.rows == 1000
    assert int(dataset.cardinality()) == 16


def test_raw_gives_the_files_own_values(tmp_path: Path) -> None:
    frame = mixed(300)
    frame.to_csv(tmp_path / "t.csv", index=False)
    inputs, labels = rows_of(stoker.data.csv(tmp_path / "t.csv", label="kind", batch_size=100, raw=True))
    assert np.array_equal(inputs["weight"], frame["weight"])
    assert inputs["sold"].dtype == bool
    assert words(inputs["colour"]) == frame["colour"].tolist()
    assert words(labels) == frame["kind"].tolist()


def test_many_files_and_compressed_ones_are_one_table(tmp_path: Path) -> None:
    frame = mixed(90)
    for number in range(3):
        part = frame[number * 30 : number * 30 + 30]
        if number == 2:
            with gzip.open(tmp_path / "2.csv.gz", "wt", encoding="utf-8") as file:
                part.to_csv(file, index=False)
        else:
            part.to_csv(tmp_path / f"{number}.csv", index=False)
    for paths in (
        tmp_path,
        [tmp_path / "0.csv", tmp_path / "1.csv", tmp_path / "2.csv.gz"],
        f"{tmp_path}/*.csv*",
    ):
        inputs, _ = rows_of(stoker.data.csv(paths, columns=["id"]))
        assert np.array_equal(inputs["id"], frame["id"])


def test_whole_numbers_turn_into_numbers_where_a_later_one_has_a_fraction(tmp_path: Path) -> None:
    values = ["7"] * 900_000 + ["1.5"]
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(f"{value},1" for value in values))
    dataset = stoker.data.csv(tmp_path / "t.csv", batch_size=100_000)
    inputs, _ = rows_of(dataset)
    assert dataset.features["a"].kind == "number"
    assert inputs["a"][0] == 7
    assert inputs["a"][-1] == 1.5


def test_missing_values_are_nan_and_exact_numbers_stay_exact(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"a,b,c,d,e\n1,{2**40},x,true,2020-01-01\n,,,,\n3,5,,false,2021-01-01\n")
    dataset = stoker.data.csv(tmp_path / "t.csv")
    inputs, _ = rows_of(dataset)
    assert inputs["a"].dtype == np.float32
    assert np.array_equal(inputs["a"], [1, np.nan, 3], equal_nan=True)
    assert inputs["b"].dtype == np.float64
    assert np.array_equal(inputs["b"], [2**40, np.nan, 5], equal_nan=True)
    assert np.array_equal(inputs["d"], [1, np.nan, 0], equal_nan=True)
    assert np.isnan(inputs["e"][1])
    assert dataset.features["a"].missing == 1
    assert [dataset.features["c"].vocabulary[i] for i in inputs["c"]] == ["x", "", ""]


def test_numbers_that_would_all_be_zero_as_float32_make_the_column_float64(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c\n1e-300,0,1e-300\n0,0.0,1.5\n")
    inputs = next(stoker.data.csv(tmp_path / "t.csv", batch_size=2).as_numpy_iterator())
    assert inputs["a"].tolist() == [1e-300, 0]
    assert [inputs[name].dtype for name in "ac"] == [np.float64, np.float32]


def test_a_number_float32_cannot_hold_makes_the_column_float64(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1.5,1\n1e300,2\n")
    inputs, _ = rows_of(stoker.data.csv(tmp_path / "t.csv"))
    assert inputs["a"].tolist() == [1.5, 1e300]


def test_quoted_newlines_and_separators_belong_to_the_value(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n"one\ntwo, three",1\n"say ""hi""",2\n')
    inputs, _ = rows_of(stoker.data.csv(tmp_path / "t.csv", raw=True))
    assert words(inputs["a"]) == ["one\ntwo, three", 'say "hi"']


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
def test_other_encodings(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "t.csv").write_text("größe,b\nüber,1\n", encoding=encoding)
    inputs, _ = rows_of(stoker.data.csv(tmp_path / "t.csv", raw=True, encoding=encoding.removesuffix("-sig")))
    assert words(inputs["größe"]) == ["über"]


def test_a_category_first_seen_in_the_last_block_has_an_id(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "red,1\n" * 900_000 + "blue,2\n")
    dataset = stoker.data.csv(tmp_path / "t.csv", batch_size=300_000)
    inputs, _ = rows_of(dataset)
    assert dataset.features["a"].vocabulary == ("[UNK]", "red", "blue")
    assert inputs["a"][0] == 1
    assert inputs["a"][-1] == 2


def test_a_column_that_is_empty_at_first_gets_its_type_later(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + ",1\n" * 2_200_000 + "blue,2\n")
    dataset = stoker.data.csv(tmp_path / "t.csv", batch_size=1_000_000)
    assert dataset.features["a"].kind == "category"
    assert dataset.features["a"].vocabulary == ("[UNK]", "", "blue")


def test_types_can_be_said(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("zip,b\n00123,1\n04512,2\n")
    inputs, _ = rows_of(stoker.data.csv(tmp_path / "t.csv", types={"zip": "category"}, raw=True))
    assert words(inputs["zip"]) == ["00123", "04512"]


def test_label_modes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,n,w\n1,5,no\n2,9,yes\n3,5,no\n4,9,yes\n")

    def labels(column: str, mode: str) -> list[object]:
        _, found = rows_of(stoker.data.csv(tmp_path / "t.csv", label=column, label_mode=mode))
        values: list[object] = found.tolist()
        return values

    assert labels("n", "auto") == [5, 9, 5, 9]
    assert labels("n", "int") == [0, 1, 0, 1]
    assert labels("w", "auto") == [0, 1, 0, 1]
    assert labels("w", "binary") == [0.0, 1.0, 0.0, 1.0]
    assert labels("w", "categorical") == [[1, 0], [0, 1], [1, 0], [0, 1]]
    with pytest.raises(ArgumentError, match="holds text"):
        labels("w", "number")


def _pandas(raw: bytes, **options: Any) -> Any:
    import pandas as pd

    return pd.read_csv(io.BytesIO(raw), keep_default_na=False, **options)


def _texts(path: Path, raw: bytes, **options: Any) -> list[str]:
    path.write_bytes(raw)
    inputs, _ = rows_of(stoker.data.csv(path, raw=True, cache=False, **options))
    return words(inputs["a"])


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_quoted_cells_hold_whatever_rfc_4180_allows(tmp_path: Path, line_end: str) -> None:
    cells = ["\n", "\r\n", "\r", "x\ny", "x\r\ny", "x\ry", '"', '""', ",", 'a,"b"\r\n,c', "", " x ", "\u2028"]
    rows = [f'"{cell.replace(chr(34), chr(34) * 2)}",{number}' for number, cell in enumerate(cells)]
    raw = line_end.join(["a,b", *rows, ""]).encode()
    assert _texts(tmp_path / "t.csv", raw) == _pandas(raw)["a"].tolist() == cells


def test_a_line_break_in_quotes_may_fall_on_the_border_of_a_block(tmp_path: Path) -> None:
    rows = 180_000
    cells = ["one\r\ntwo\nthree, and so on" * (number % 3) for number in range(rows)]
    raw = "a,b\n" + "".join(f'"{cell}",{number}\n' for number, cell in enumerate(cells))
    assert len(raw) > 1 << 22
    assert _texts(tmp_path / "t.csv", raw.encode(), batch_size=50_000) == cells


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_lone_carriage_return_stays_in_its_cell(tmp_path: Path, line_end: str) -> None:
    import polars

    # What `csv.writer` and pandas write: a return that ends no row of theirs is not quoted.
    raw = line_end.join(["a,b", "x\ry,1", '"u\rv, w",2', "\x01plain,3", "größe\rx,4", ""]).encode()
    expected = ["x\ry", "u\rv, w", "\x01plain", "größe\rx"]
    assert polars.read_csv(raw)["a"].to_list() == expected
    assert _texts(tmp_path / "t.csv", raw) == expected
    assert _texts(tmp_path / "u.csv", raw.decode().encode("utf-16"), encoding="utf-16") == expected
    (tmp_path / "v.csv.gz").write_bytes(gzip.compress(raw))
    inputs, _ = rows_of(stoker.data.csv(tmp_path / "v.csv.gz", raw=True))
    assert words(inputs["a"]) == expected
    assert inputs["b"].tolist() == [1, 2, 3, 4]


def test_a_lone_carriage_return_may_come_late(tmp_path: Path) -> None:
    lines = [f"plain text {number},{number}" for number in range(300_000)]
    lines[250_000] = "broken\rtext,7"
    found = _texts(tmp_path / "t.csv", "\n".join(["a,b", *lines]).encode(), batch_size=100_000)
    assert len(found) == 300_000
    assert found[250_000] == "broken\rtext"


def test_a_lone_carriage_return_stays_in_the_cell_of_a_single_column(tmp_path: Path) -> None:
    assert _texts(tmp_path / "t.csv", b"a\nx\ry\n \rz\n\n\rw\n") == ["x\ry", " \rz", "\rw"]
    assert _texts(tmp_path / "u.csv", b"a\rx\ry\r") == ["x", "y"]


@pytest.mark.parametrize("raw", [b"a,b\rx,1\ry,2\r", b"a,b\r\r\nx,1\r\r\ny,2\r\r\n", b"a,b\nx,1\ry,2\n"])
def test_carriage_returns_that_end_rows_end_them(tmp_path: Path, raw: bytes) -> None:
    assert _texts(tmp_path / "t.csv", raw) == _pandas(raw)["a"].tolist() == ["x", "y"]


def test_a_cell_may_be_longer_than_a_block(tmp_path: Path) -> None:
    cells = ["short", "long " * 1_100_000, "short"]
    assert (
        _texts(tmp_path / "t.csv", "\n".join(["a,b", *(f'"{cell}",1' for cell in cells)]).encode()) == cells
    )


def test_hexadecimal_numbers_are_text_as_in_pandas(tmp_path: Path) -> None:
    raw = b"a,b\n0x1F,1\n12,2\n"
    assert _texts(tmp_path / "t.csv", raw) == _pandas(raw)["a"].tolist() == ["0x1F", "12"]


def test_none_among_numbers_is_missing_as_in_pandas(tmp_path: Path) -> None:
    raw = b"a,b\n1.5,x\nNone,x\n<NA>,y\n"
    (tmp_path / "t.csv").write_bytes(raw)
    inputs, _ = rows_of(stoker.data.csv(tmp_path / "t.csv"))
    assert np.array_equal(inputs["a"], [1.5, np.nan, np.nan], equal_nan=True)


@pytest.mark.parametrize("missing", ["?", ["?", "n.a."]])
def test_texts_can_stand_for_missing_values(tmp_path: Path, missing: Any) -> None:
    odd = "n.a." if len(missing) == 2 else "?"
    raw = "a,b,c,d\n" + "".join(f"{n}.5,{n},x{n % 2},2026-01-0{n % 9 + 1}\n" for n in range(20))
    raw += f"?,{odd},?,{odd}\n"
    (tmp_path / "t.csv").write_text(raw)
    dataset = stoker.data.csv(tmp_path / "t.csv", missing=missing)
    inputs, _ = rows_of(dataset)
    expected = _pandas(raw.encode(), na_values=missing, parse_dates=["d"])
    assert {name: dataset.features[name].kind for name in "abcd"} == {
        "a": "number",
        "b": "whole",
        "c": "category",
        "d": "date",
    }
    assert np.array_equal(inputs["a"], expected["a"].to_numpy(np.float32), equal_nan=True)
    assert np.array_equal(inputs["b"], expected["b"].to_numpy(np.float32), equal_nan=True)
    assert [dataset.features[name].missing for name in "abcd"] == [1, 1, 1, 1]
    assert inputs["c"][-1] == 0
    assert "?" not in dataset.features["c"].vocabulary
    assert np.isnan(inputs["d"][-1])


def test_pandas_is_not_imported_to_read_a_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c\n" + "1,x,0.5\n2,y,?\n" * 3)
    program = (
        "import sys, pathlib; from stoker.data.csv_files import CsvFiles; "
        "CsvFiles([pathlib.Path(sys.argv[1])]).columns(); sys.exit('pandas' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "t.csv")], check=True)
