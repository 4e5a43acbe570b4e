"""Make installs system packages only when it is asked to."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import ROOT

# Whether anybody asked for packages, and what the make that may run these tests tells the makes below it.
HIDDEN = ("CI", "STOKER_INSTALL", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A machine of root's that has apt-get but no browser; apt-get writes down what it is asked for."""
    place = tmp_path / "bin"
    place.mkdir()
    if shutil.which("make") is None:
        pytest.skip("no make")
    for name in ("sh", "make"):
        (place / name).symlink_to(shutil.which(name) or "")
    for name, text in {"id": "echo 0", "apt-get": f'echo "$@" >> {tmp_path}/asked'}.items():
        (place / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / name).chmod(0o755)
    return place


def _make(programs: Path, target: str, **variables: str) -> tuple[str, str]:
    """What make says, and what apt-get was asked for."""
    rest = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    environment = {**rest, "PATH": str(programs), **variables}
    command = ["make", "SHELL=/bin/sh", target]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    asked = programs.parent / "asked"
    return done.stdout, asked.read_text() if asked.exists() else ""


def test_nothing_is_installed_unasked(programs: Path) -> None:
    said, asked = _make(programs, "browser")
    assert said == (
        "Skipped: the browser tests. Install chromium chromium-driver, or run as root: make system-packages\n"
    )
    assert asked == ""


@pytest.mark.parametrize("variables", [{"CI": "true"}, {"STOKER_INSTALL": "1"}])
def test_ci_and_who_asks_get_them(programs: Path, variables: dict[str, str]) -> None:
    said, asked = _make(programs, "browser", **variables)
    assert said == ""
    assert "install --no-install-recommends chromium chromium-driver" in asked


def test_one_target_installs_all(programs: Path) -> None:
    _, asked = _make(programs, "system-packages")
    assert "chromium-driver" in asked
    assert "slurm-wlm" in asked
