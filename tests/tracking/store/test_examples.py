"""The study in examples/store: its runs, its parameter and its artifact are in the store afterwards."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import stoker
from tests.support import ROOT

pytestmark = pytest.mark.tensorflow


def test_the_study_keeps_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_STORE", "sqlite:///study.db")
    runpy.run_path(str(ROOT / "examples" / "store" / "study.py"), run_name="__main__")
    *children, best = capsys.readouterr().out.splitlines()
    losses = [float(loss) for line in children for loss in re.findall(r"val_loss ([\d.]+)", line)]
    assert len(losses) == 3
    assert losses == sorted(losses)
    (study,) = stoker.runs("name = 'learning rates'")
    assert best == f"best rate: {study['params.best_rate']}"
