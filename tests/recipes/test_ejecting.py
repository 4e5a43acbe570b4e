"""An ejected program is the recipe's own: same weights to the bit, nothing to repair in it or in its run."""

from __future__ import annotations

import ast
import dataclasses
import runpy
from pathlib import Path
from typing import Any

import pytest

from stoker.commands import main
from stoker.recipes import ejecting
from tests.recipes.data_files import sales
from tests.recipes.weights import weights_in
from tests.support import run_stoker

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("kind", ["table", "text", "image"])
def test_stoker_check_finds_nothing(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(ejecting.program(kind, _settings(kind)))
    assert main(["check", "train.py"]) == 0, capsys.readouterr().out


def _settings(kind: str) -> Any:
    if kind == "table":
        from stoker.recipes.programs import table

        return table.Settings(data='a "b".csv', target="c\\d", run="runs/x", columns=("a", "b"))
    if kind == "text":
        from stoker.recipes.programs import text

        return text.Settings(data="texts", run="runs/x", max_length=40)
    from stoker.recipes.programs import image

    return image.Settings(data="photos", run="runs/x", size=(8, 8))


def test_names_with_quotes_come_through(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(ejecting.program("table", _settings("table")))
    scope = runpy.run_path(str(file), run_name="ejected")
    last = ast.parse(file.read_text()).body[-1]
    (call,) = (node for node in ast.walk(last) if isinstance(node, ast.Call) and node.keywords)
    found = eval(ast.unparse(call), scope)
    assert dataclasses.asdict(found) == dataclasses.asdict(_settings("table"))


def test_it_gives_the_same_weights_and_has_nothing_to_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    sales(tmp_path / "sales.csv")
    asked = ["train", "table", "sales.csv", "--target", "price", "--epochs", "6"]
    assert main([*asked, "--eject", "mine.py"]) == 0
    assert not (tmp_path / "runs").exists()
    assert main([*asked, "--eject", "mine.py"]) == 2
    assert main(asked) == 0
    outcome = run_stoker(tmp_path, "mine.py")
    assert outcome.code == 0, outcome.stderr
    assert outcome.record is not None
    assert outcome.record["findings"] == []
    assert weights_in(tmp_path / "runs" / "mine") == weights_in(tmp_path / "runs" / "latest")
