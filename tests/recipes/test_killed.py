"""Killed at any moment, the same program ends with the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stoker.recipes import ejecting
from stoker.recipes.programs import table
from tests.recipes.data_files import sales
from tests.recipes.weights import weights_in
from tests.support import environment, stop_when

pytestmark = pytest.mark.slow
SETTINGS = table.Settings(
    data="sales.csv",
    target="price",
    run="runs/one",
    networks=("plain",),
    epochs=6,
    batch_size=16,
    save_every=4,
    hidden=(16,),
)


def _killed_when(where: Path, condition: Callable[[], bool]) -> bool:
    """Run it until something holds, then kill it; False if it had ended before."""
    process = subprocess.Popen(
        [sys.executable, "train.py"],
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


def _inside(path: Path) -> list[str]:
    try:
        return [name for name in os.listdir(path) if not name.startswith(".")]
    except FileNotFoundError:
        return []


def _ended(where: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[int, ...], bytes]]:
    """The weights after the program has run to its end, here."""
    monkeypatch.chdir(where)
    table.main(SETTINGS)
    return weights_in(where / SETTINGS.run)


def test_killed_while_it_trains_and_while_it_exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for where in (whole, broken):
        where.mkdir()
        sales(where / "sales.csv", 200)
        (where / "train.py").write_text(ejecting.program("table", SETTINGS))
    run = broken / SETTINGS.run
    assert _killed_when(broken, lambda: len(_inside(run / "checkpoints" / "plain")) >= 2)
    assert _killed_when(broken, lambda: any(run.glob(".bundle.*")))
    assert not (run / "result.json").exists()
    assert _ended(broken, monkeypatch) == _ended(whole, monkeypatch)
    assert not list(run.glob(".bundle.*"))
