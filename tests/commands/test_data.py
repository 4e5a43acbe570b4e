"""`stoker data`: what a table holds, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stoker.commands import main


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


def test_bad_paths_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", str(tmp_path / "none.csv")]) == 2
    assert capsys.readouterr().err == f"stoker: there is no file or folder {tmp_path / 'none.csv'}\n"
    (tmp_path / "t.bin").write_bytes(b"\0")
    assert main(["data", str(tmp_path / "t.bin")]) == 2
    assert "is no table that can be read" in capsys.readouterr().err
