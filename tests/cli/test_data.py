"""`stoker data`: what a table holds, for people and for programs."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from stoker.cli import main


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("a,n,c,d\n1.5,1,red,2020-01-01\n,2,blue,2020-01-03\n4.5,9,red,2020-01-02\n")
    return path


def test_it_says_what_is_there(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", str(table)]) == 0
    shown = capsys.readouterr().out
    assert "3 rows, 4 columns, csv, 1 file" in shown
    assert "2 different: 'red' 2, 'blue' 1" in shown
    assert "1.5 to 4.5, mean 3" in shown
    assert "2020-01-01 to 2020-01-03" in shown


def test_what_is_not_read_is_said_beside_the_json(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "u.jsonl").write_text('{"a": 1}\n')
    assert main(["data", str(tmp_path), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["rows"] == 3
    assert "t.csv is read" in captured.err
    assert "u.jsonl is not; give a glob" in captured.err


def test_the_separator_is_found_or_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("a\tb\n1\t2\n")
    assert main(["data", str(tmp_path / "t.csv")]) == 0
    assert ": 1 row, 2 columns, csv, 1 file" in capsys.readouterr().out
    assert main(["data", str(tmp_path / "t.csv"), "--sep", r"\t"]) == 0
    assert ": 1 row, 2 columns, csv, 1 file" in capsys.readouterr().out


def test_as_json(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", str(table), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    columns = {column["name"]: column for column in found["columns"]}
    assert found["rows"] == 3
    assert found["bytes"] == table.stat().st_size
    assert found["rows_per_s"] > 0
    assert columns["a"]["missing"] == 1
    assert columns["n"]["values"] == {
        "least": 1,
        "largest": 9,
        "mean": 4.0,
        "histogram": [1, 1, 0, 0, 0, 0, 0, 0, 0, 1],
    }
    assert columns["c"]["top"] == [["red", 2], ["blue", 1]]


def test_whole_numbers_keep_their_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n{2**60},1\n{2**60 + 9},1\n")
    main(["data", str(path), "--json"])
    spread = json.loads(capsys.readouterr().out)["columns"][0]["values"]
    assert (spread["least"], spread["largest"]) == (2**60, 2**60 + 9)
    assert spread["histogram"] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]


@pytest.mark.tensorflow
def test_it_says_what_images_texts_records_and_shards_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import tensorflow as tf

    for number in range(6):
        image = tf.io.encode_png(tf.zeros([4, 5, 3], tf.uint8)).numpy()
        for folder, ending, content in (("photos", "png", image), ("texts", "txt", b"word " * (number + 1))):
            (tmp_path / folder / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / "ab"[number % 2] / f"{number}.{ending}").write_bytes(content)
    (tmp_path / "photos" / "a" / "odd.jpg").write_bytes(b"no image")
    with (
        tf.io.TFRecordWriter(str(tmp_path / "t.tfrecord")) as records,
        tarfile.open(tmp_path / "t.tar", "w") as tar,
    ):
        for number in range(300):
            value = tf.train.Feature(int64_list=tf.train.Int64List(value=[1] * (number % 3)))
            records.write(
                tf.train.Example(features=tf.train.Features(feature={"n": value})).SerializeToString()
            )
            member = tarfile.TarInfo(f"{number}.cls")
            member.size = 1
            tar.addfile(member, io.BytesIO(str(number % 2).encode()))
    for path, said in {
        "photos": ["7 rows", "6 of 4 x 5 x 3", "2 different: 'a' 4, 'b' 3", "odd.jpg cannot be decoded"],
        "texts": ["6 rows", "5 to 30 characters", "2 different: 'a' 3, 'b' 3"],
        "t.tfrecord": ["300 rows", "int64 list", "0 to 2 values, mean 1"],
        "t.tar": ["300 rows", "2 different: '0' 150, '1' 150"],
    }.items():
        assert main(["data", str(tmp_path / path)]) == 0
        shown = capsys.readouterr().out
        assert [words for words in said if words not in shown] == [], shown


def test_bad_paths_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", str(tmp_path / "none.csv")]) == 2
    assert capsys.readouterr().err == f"stoker: there is no file or folder {tmp_path / 'none.csv'}\n"
    (tmp_path / "t.bin").write_bytes(b"\0")
    assert main(["data", str(tmp_path / "t.bin")]) == 2
    assert "is not a table Stoker can read" in capsys.readouterr().err
