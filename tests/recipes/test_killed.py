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
from stoker.recipes.programs.table import Settings
from tests.recipes.data_files import sales
from tests.recipes.weights import weights_in
from tests.support import environment, stop_when


def _written(where: Path) -> Path:
    sales(where / "sales.csv", 200)
    settings = Settings(
        data="sales.csv", target="price", run="runs/one", epochs=6, batch_size=16, save_every=4, hidden=(16,)
    )
    (where / "train.py").write_text(ejecting.program("table", settings))
    return where


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


@pytest.mark.slow
def test_killed_three_times_it_ends_as_one_that_was_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    whole, broken = (_written(_made(tmp_path / name)) for name in ("whole", "broken"))
    subprocess.run(
        [sys.executable, "train.py"], cwd=whole, env=environment(), check=True, capture_output=True
    )
    run = broken / "runs" / "one"
    first, second = run / "checkpoints" / "plain", run / "checkpoints" / "periodic"
    assert _killed_when(broken, lambda: len(_inside(first)) >= 2)
    assert _killed_when(broken, lambda: len(_inside(second)) >= 2)
    assert _killed_when(broken, lambda: any(run.glob(".bundle.*")))
    subprocess.run(
        [sys.executable, "train.py"], cwd=broken, env=environment(), check=True, capture_output=True
    )
    assert weights_in(run) == weights_in(whole / "runs" / "one")
    assert not list(run.glob(".bundle.*"))


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def _inside(path: Path) -> list[str]:
    try:
        return [name for name in os.listdir(path) if not name.startswith(".")]
    except FileNotFoundError:
        return []
