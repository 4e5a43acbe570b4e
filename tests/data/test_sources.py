"""Every other source of a table gives what CSV of the same rows gives."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from tests.data.frames import mixed, rows_of

# The readers load it when they are used.
pytestmark = pytest.mark.tensorflow

_OPTIONS: dict[str, Any] = {"label": "kind", "batch_size": 64, "shuffle": True, "seed": 2}


@pytest.fixture
def frame() -> Any:
    return mixed(500)


@pytest.fixture
def expected(frame: Any, tmp_path: Path) -> Any:
    frame.to_csv(tmp_path / "t.csv", index=False)
    return rows_of(stoker.data.csv(tmp_path / "t.csv", **_OPTIONS))


def _same(dataset: Any, expected: Any, but: tuple[str, ...] = ()) -> None:
    inputs, labels = rows_of(dataset)
    assert set(inputs) == set(expected[0])
    for name, value in inputs.items():
        if name not in but:
            assert value.dtype == expected[0][name].dtype, name
            assert np.array_equal(value, expected[0][name]), name
    assert np.array_equal(labels, expected[1])


def test_parquet(frame: Any, expected: Any, tmp_path: Path) -> None:
    import pandas as pd

    frame["day"] = pd.to_datetime(frame["day"]).dt.date
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=100)
    _same(stoker.data.parquet(tmp_path / "t.parquet", **_OPTIONS), expected)


def test_json_lines(frame: Any, expected: Any, tmp_path: Path) -> None:
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True, force_ascii=False)
    dataset = stoker.data.jsonl(tmp_path / "t.jsonl", **_OPTIONS)
    # JSON has no dates of its own: Arrow takes midnight of the day, in seconds.
    _same(dataset, expected, but=("day",))
    assert dataset.features["day"].kind == "date"
    inputs, _ = rows_of(stoker.data.jsonl(tmp_path / "t.jsonl"))
    assert np.array_equal(inputs["day"], frame["day"].astype("datetime64[s]").astype(np.int64))


def test_frames_of_pandas_polars_and_arrow(frame: Any, expected: Any) -> None:
    import polars
    import pyarrow as pa

    for data in (frame, polars.from_pandas(frame), pa.Table.from_pandas(frame)):
        _same(stoker.data.frame(data, types={"day": "date"}, **_OPTIONS), expected, but=("day",))


def test_pandas_categories_and_nullable_numbers() -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {"c": pd.Categorical(["b", "a", None, "b"]), "n": pd.array([1, None, 3, 4], dtype="Int64")}
    )
    dataset = stoker.data.frame(frame)
    inputs, _ = rows_of(dataset)
    assert dataset.features["c"].vocabulary == ("[UNK]", "b", "a")
    assert inputs["c"].tolist() == [1, 2, 0, 1]
    assert np.array_equal(inputs["n"], [1, np.nan, 3, 4], equal_nan=True)


def test_a_hugging_face_dataset(frame: Any, expected: Any) -> None:
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_pandas(frame)
    _same(stoker.data.frame(data, types={"day": "date"}, **_OPTIONS), expected, but=("day",))
    inputs, _ = rows_of(stoker.data.frame(data.select([3, 1]), columns=["id"]))
    assert inputs["id"].tolist() == [2**60 + 3, 2**60 + 1]


def test_sql_by_path_connection_and_sqlalchemy(frame: Any, expected: Any, tmp_path: Path) -> None:
    import sqlalchemy

    path = tmp_path / "t.db"
    with sqlite3.connect(path) as connection:
        frame.to_sql("t", connection, index=False)
    query = "SELECT * FROM t ORDER BY id"
    for given in (path, sqlite3.connect(path), sqlalchemy.create_engine(f"sqlite:///{path}").connect()):
        dataset = stoker.data.sql(given, query, **_OPTIONS, types={"sold": "truth", "day": "date"})
        _same(dataset, expected, but=("day",))


def test_arrays_keep_their_structure_and_types() -> None:
    x: Any = {"a": np.arange(12, dtype=np.float64).reshape(6, 2), "b": np.arange(6, dtype=np.uint8)}
    y = np.arange(6) % 2 == 0
    batches = list(stoker.data.arrays(x, y, batch_size=4))
    inputs, label = batches[1]
    assert inputs["a"].numpy().tolist() == [[8, 9], [10, 11]]
    assert inputs["b"].dtype == "uint8"
    assert label.numpy().tolist() == [True, False]


def test_json_lines_with_gaps_and_changing_numbers(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": None}, {"a": 2.5}, {"a": None, "b": "x"}]
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    dataset = stoker.data.jsonl(tmp_path / "t.jsonl")
    inputs, _ = rows_of(dataset)
    assert np.array_equal(inputs["a"], [1, 2.5, np.nan], equal_nan=True)
    assert [dataset.features["b"].vocabulary[i] for i in inputs["b"]] == ["[UNK]", "[UNK]", "x"]
    (tmp_path / "u.jsonl").write_text('{"a": 1}\n' * 600_000 + '{"a": 2.5}\n')
    inputs, _ = rows_of(stoker.data.jsonl(tmp_path / "u.jsonl", batch_size=200_000))
    assert inputs["a"][-1] == 2.5


def test_json_lines_may_be_longer_than_a_block_and_compressed(tmp_path: Path) -> None:
    rows = [{"a": "short", "b": 1}, {"a": "long " * 2_000_000, "b": 2}, {"a": "short", "b": 3}]
    text = "\n".join(json.dumps(row) for row in rows * 2)
    (tmp_path / "t.jsonl").write_text(text)
    (tmp_path / "u.jsonl.gz").write_bytes(gzip.compress(text.encode(), 1))
    for name in ("t.jsonl", "u.jsonl.gz"):
        inputs, _ = rows_of(stoker.data.jsonl(tmp_path / name, raw=True))
        assert [value.decode() for value in inputs["a"]] == [row["a"] for row in rows * 2]
        assert inputs["b"].tolist() == [1, 2, 3] * 2


def test_more_than_200_000_different_texts_are_no_category(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"x{number},1\n" for number in range(200_001)))
    dataset = stoker.data.csv(tmp_path / "t.csv", batch_size=100_000)
    assert dataset.features["a"].kind == "text"
    assert rows_of(dataset)[0]["a"][200_000] == b"x200000"
