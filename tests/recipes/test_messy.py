"""`stoker train table` of messy files: what was read how is shown, and each row of the file is answered over REST."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("orjson")

import stoker
from stoker.cli import main
from tests.data import messy_files
from tests.serve.http.asking import application, ask

pytestmark = pytest.mark.tensorflow
# Columns that need no training to be judged.
EJECT = ["--eject", "mine.py", "--force"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("STOKER_STORE", f"sqlite:///{tmp_path}/store.db")


@pytest.mark.slow
def test_a_messy_file_is_trained_and_each_of_its_rows_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, made = messy_files.write("words_among_numbers", tmp_path)
    lines = path.read_text().splitlines()
    about = [
        f'"flat {n}, {"sunny" if n % 3 else "dark"}, near the old station",{n} m2,C{n:04}'
        for n in range(len(lines))
    ]
    path.write_text(
        "\n".join(
            ["note,yard,code," + lines[0], *(f"{a},{b}" for a, b in zip(about, lines[1:], strict=False))]
        )
    )
    assert (
        main(["train", "table", path.name, "--target", made.target, "--epochs", "2", "--name", "homes"]) == 0
    )
    said = capsys.readouterr().out
    for line in (
        "note   free text",
        "yard   number, 'm2' taken off",
        "1 unreadable cell taken as missing: 'about 70' in row 31",
        "code   left out",
        "2 rows without a value in 'price' left out",
    ):
        assert line in said
    result = json.loads(Path("runs/homes/result.json").read_text())
    reading = {one["column"]: one for one in result["reading"]["columns"]}
    assert reading["price"]["note"].startswith("the target; 1 unreadable cell taken as missing: 'on request'")
    assert reading["code"] == {
        "column": "code",
        "read": "",
        "note": "nearly every row has a different value, like an id",
    }
    page = Path("runs/homes/report.html").read_text()
    assert "How the table was read" in page
    assert "&#x27;about 70&#x27; in row 31" in page or "'about 70' in row 31" in page
    rows: Any = messy_files.rows_of(path, made)
    app, _ = application({"homes": Path("runs/homes/bundle")})
    answer = asyncio.run(ask(app, "POST", "/v1/models/homes:predict", {"instances": rows}))
    assert answer.status == 200, answer.body
    assert all(one == one for (one,) in answer.json()["predictions"])
    assert len(rows) == messy_files.ROWS
    examples = asyncio.run(ask(app, "GET", "/try/homes")).json()["examples"]
    # Real rows of the file, with a price from the least to the largest.
    sizes = {(str(row["note"]), row["town"]) for row in rows}
    assert len(examples) == 5
    assert {(one["note"], one["town"]) for one in examples} <= sizes
    assert stoker.Predictor("runs/homes/bundle").predict(rows)["prediction"].shape == (messy_files.ROWS, 1)


@pytest.mark.parametrize("name", ["ids_and_names", "the_header_again_and_again", "a_class_with_a_typo"])
def test_what_is_left_out_is_said(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, made = messy_files.write(name, tmp_path)
    assert main(["train", "table", path.name, "--target", made.target, *EJECT]) == 0
    said = capsys.readouterr().out
    wanted = {
        "ids_and_names": [
            "customer  left out",
            "uuid      left out",
            "serial    left out",
            "mail      left out",
        ],
        "the_header_again_and_again": ["2 rows left out: the header again (rows 41, 82)"],
        "a_class_with_a_typo": ["class 'chaep' has 1 row", "1 row without a value in 'class' left out"],
    }[name]
    for line in wanted:
        assert line in said
    program = Path("mine.py").read_text()
    if name == "ids_and_names":
        assert 'columns=("size", "rooms", "town", "price")' in program


def test_columns_are_excluded_kinds_given_and_gaps_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        f"{45_000 + n},{n % 5},{'void' if n % 9 == 4 else n * 7 % 31},{n * 17 % 101}.5" for n in range(80)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["day,kind,size,y", *rows]))
    asked = ["train", "table", "t.csv", "--target", "y", *EJECT]
    assert main([*asked, "--exclude", "kind", "--types", "day=date", "--na", "void"]) == 0
    said = capsys.readouterr().out
    for line in ("day   date", "size  whole number  9 missing", "kind  left out      as asked"):
        assert line in said
    program = (tmp_path / "mine.py").read_text()
    assert 'types=(("day", "date"),)' in program
    assert 'missing=("void",)' in program
    for words, line in (
        (["--exclude", "y"], "--exclude 'y' is the target"),
        (["--exclude", "knd"], "--exclude: there is no column 'knd'; did you mean 'kind'?"),
        (["--types", "day"], "--types day: give COLUMN=KIND, such as day=date"),
        (["--types", "day=time"], "day='time' must be one of number, whole"),
        (["--types", "dy=date"], "--types: there is no column 'dy'; did you mean 'day'?"),
    ):
        assert main([*asked, *words]) == 2
        error = capsys.readouterr().err
        assert line in error
        assert error.count("\n") == 1


def test_a_mixture_is_a_category_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    days = [f"2026-{1 + n % 12:02}-{1 + n % 28:02}" if n % 4 else f"week {n}" for n in range(120)]
    (tmp_path / "t.csv").write_text(
        "\n".join(["day,y", *(f"{day},{n * 7 % 31}.5" for n, day in enumerate(days))])
    )
    assert main(["train", "table", "t.csv", "--target", "y", *EJECT]) == 0
    assert "75 % of its cells are dates, others are not, such as 'week 0'" in capsys.readouterr().out
