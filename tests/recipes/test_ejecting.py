"""An ejected program is the recipe's own: same weights to the bit, nothing to repair in it or in its run."""

from __future__ import annotations

import ast
import dataclasses
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stoker.cli import main
from stoker.recipes import ejecting
from tests.recipes.data_files import sales
from tests.recipes.weights import weights_in
from tests.support import environment, run_stoker, stop_when

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("kind", ["table", "text", "image"])
def test_stoker_check_finds_nothing(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = ejecting.program(kind, _settings(kind))
    (tmp_path / "train.py").write_text(program)
    assert main(["check", "train.py"]) == 0, capsys.readouterr().out
    # As docs/recipes.md says.
    assert 170 <= len(program.splitlines()) <= 250


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


def test_a_file_that_is_there_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    sales(tmp_path / "sales.csv")
    (tmp_path / "mine.py").write_text("# mine\n")
    asked = ["train", "table", "sales.csv", "--target", "price", "--eject", "mine.py"]
    assert main(asked) == 2
    assert (tmp_path / "mine.py").read_text() == "# mine\n"
    assert main([*asked, "--force"]) == 0
    assert "def network(" in (tmp_path / "mine.py").read_text()
    assert not (tmp_path / "runs").exists()


def _killed_when(where: Path, program: str, condition: Callable[[], bool]) -> bool:
    """Run it until something holds, then kill it; False if it had ended before."""
    process = subprocess.Popen(
        [sys.executable, program],
        cwd=where,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return stop_when(process.pid, condition)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _saved(path: Path) -> int:
    return len([one for one in path.iterdir() if one.suffix == ".stoker"]) if path.is_dir() else 0


@pytest.mark.slow
def test_killed_and_run_again_it_gives_the_weights_of_the_command_and_has_nothing_to_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    sales(tmp_path / "sales.csv")
    asked = ["train", "table", "sales.csv", "--target", "price", "--epochs", "5"]
    assert main(asked) == 0
    assert main([*asked, "--eject", "mine.py"]) == 0
    often = (tmp_path / "mine.py").read_text().replace("epochs=5,", "epochs=5,\n            save_every=4,")
    (tmp_path / "mine.py").write_text(often)
    run = tmp_path / "runs" / "mine"
    assert _killed_when(tmp_path, "mine.py", lambda: _saved(run / "checkpoints" / "plain") >= 2)
    # As an export leaves it that was killed.
    (run / ".bundle.1.new").mkdir()
    outcome = run_stoker(tmp_path, "mine.py")
    assert outcome.code == 0, outcome.stderr
    assert outcome.record is not None
    assert outcome.record["findings"] == []
    assert weights_in(run) == weights_in(next(tmp_path.glob("runs/sales-price-*")))
    assert not list(run.glob(".bundle.*"))
