"""Classes that are whole numbers are called "2", although missing cells make floats of them."""

from __future__ import annotations

import asyncio
import csv
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("orjson")

import stoker
from stoker.cli import main
from tests.serve.http.asking import application, ask

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("STOKER_STORE", f"sqlite:///{tmp_path}/store.db")


def _write(written: str) -> None:
    """Grades from 1 to 3 that follow from `ph`; some are missing."""
    grades = [written.format(1 + n % 3) if n % 20 else "" for n in range(120)]
    rows = [f"{n % 3 + n / 1000};{n * 7 % 11};{grade}" for n, grade in enumerate(grades)]
    Path("g.csv").write_text("\n".join(["ph;lead;grade", *rows]))


@pytest.mark.slow
@pytest.mark.parametrize("written", ["{}", "{}.0", "{},0"])
def test_whole_numbers_with_gaps_name_classes_without_a_fraction(
    written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(written)
    asked = ["--target", "grade", "--task", "classes", "--epochs", "2", "--only", "linear", "--name", "g"]
    assert main(["train", "table", "g.csv", *asked]) == 0
    assert "  grade  classes       the target: 3 classes, 1 38, 2 38, 3 38\n" in capsys.readouterr().out
    reading = json.loads(Path("runs/g/result.json").read_text())["reading"]["columns"]
    assert [one["read"] for one in reading if one["column"] == "grade"] == ["classes"]
    bundle = Path("runs/g/bundle")
    assert json.loads((bundle / "bundle.json").read_text())["labels"] == ["1", "2", "3"]
    assert main(["predict", str(bundle), "g.csv", "-o", "o.csv"]) == 0
    with open("o.csv", newline="") as file:
        answers = list(csv.DictReader(file))
    assert {one["prediction"] for one in answers} <= {"1", "2", "3"}
    assert [name for name in answers[0] if name.startswith("scores.")] == ["scores.1", "scores.2", "scores.3"]
    app, _ = application({"g": bundle})
    row: Any = {"ph": 1.01, "lead": 3}
    answer = asyncio.run(ask(app, "POST", "/v1/models/g:predict", {"instances": [row]}))
    assert answer.json()["predictions"][0]["label"] in ("1", "2", "3")
    capsys.readouterr()
    assert main(["evaluate", str(bundle), "g.csv"]) == 0
    assert "114 rows" in capsys.readouterr().out


def test_other_numbers_keep_their_names(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["x,y", *(f"{n},{(1, 2.5)[n % 2]}" for n in range(40))]))
    train: Any = stoker.data.csv(path, "y", label_mode="int", cache=False)
    assert train.class_names == [1.0, 2.5]


def test_at_most_five_classes_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = ["Yes"] * 40 + ["Y"] * 30 + ["No"] * 50 + ["a", "b", "c", "d"] * 2
    Path("k.csv").write_text("\n".join(["x,kind", *(f"{n * 7 % 31}.5,{one}" for n, one in enumerate(kinds))]))
    assert main(["train", "table", "k.csv", "--target", "kind", "--eject", "mine.py"]) == 0
    said = capsys.readouterr().out
    assert "kind  classes  the target: 7 classes, No 50, Yes 40, Y 30, a 2, b 2 and 2 more\n" in said
