"""Programs in processes of their own, and TensorFlow's types as they were before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.support import HANGS_S, ROOT, no_software_gpu

Facts = Callable[..., dict[str, Any]]


@cache
def _facts(program: str, *arguments: str) -> dict[str, Any]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
    command = [sys.executable, "-m", f"tests.doctor.guard.programs.{program}", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert done.returncode == 0, f"{program} failed:\n{done.stderr[-3000:]}"
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


@pytest.fixture(scope="session")
def on_cpu() -> Facts:
    """The same in a process without it."""
    pytest.importorskip("tensorflow")
    return _facts


@pytest.fixture(scope="session")
def on_software_gpu() -> Facts:
    """Run a program on the software GPU and return the facts it prints; one run serves all tests."""
    pytest.importorskip("tensorflow")
    if missing := no_software_gpu():
        pytest.skip(missing)
    return _facts
