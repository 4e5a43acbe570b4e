"""Programs for the software GPU run in processes of their own: devices come before TensorFlow starts."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.support import HANGS_S, ROOT, no_software_gpu

Run = Callable[..., dict[str, Any]]


@cache
def _run(program: str, arguments: tuple[str, ...], attempt: int) -> dict[str, Any]:
    command = [sys.executable, "-m", f"tests.doctor.software_gpu.programs.{program}", *arguments]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HANGS_S)
    assert done.returncode == 0, f"{program} failed:\n{done.stderr[-3000:]}"
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a program and return the facts it prints; the same run serves all tests that ask for it."""
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed")
    if missing := no_software_gpu():
        pytest.skip(missing)
    return lambda program, *arguments, attempt=1: _run(program, arguments, attempt)
