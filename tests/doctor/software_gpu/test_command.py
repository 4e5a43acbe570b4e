"""`stoker software-gpu` and the example program, as a person runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stoker.cli import main
from stoker.doctor import software_gpu
from stoker.doctor.software_gpu import build
from tests.doctor.software_gpu.conftest import Run
from tests.support import ROOT


def test_status_says_what_there_is(capsys: pytest.CaptureFixture[str], run: Run) -> None:
    assert main(["software-gpu", "--status"]) == 0
    shown = capsys.readouterr().out
    assert f"TensorFlow  {build.installed_tensorflow().version}" in shown
    assert "a100" in shown


def test_without_a_compiler_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run
) -> None:
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    assert main(["software-gpu"]) == 2
    captured = capsys.readouterr()
    assert "not built" in captured.out
    assert captured.err.startswith("stoker: the software GPU needs a C++ compiler")
    assert len(captured.err.splitlines()) == 1


def test_clean_removes_builds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path))
    (build.cache_directory() / "old").mkdir(parents=True)
    assert main(["software-gpu", "--clean"]) == 0
    assert not build.cache_directory().exists()
    assert "removed" in capsys.readouterr().out


@pytest.mark.slow
def test_the_self_test_passes(capsys: pytest.CaptureFixture[str], run: Run) -> None:
    assert main(["software-gpu"]) == 0
    shown = capsys.readouterr().out
    assert len(re.findall(r"self-test   ok", shown)) == 4
    assert "FAILED" not in shown


def test_enabling_too_late_is_one_clear_error(run: Run) -> None:
    code = (
        "import tensorflow as tf; tf.constant(1.0)\n"
        "from stoker import software_gpu, errors\n"
        "try: software_gpu.enable()\n"
        "except errors.UsageError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "TensorFlow has already started: enable the software GPU before the first op\n"


def test_it_is_refused_where_tensorflow_sees_another_gpu(run: Run) -> None:
    """The device of the first call stands for a real one, of which Stoker knows nothing."""
    code = (
        "from stoker import software_gpu, errors\n"
        "from stoker.doctor.software_gpu import activation\n"
        "software_gpu.enable()\n"
        "activation._enabled = None\n"
        "try: software_gpu.enable()\n"
        "except errors.UsageError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "this machine has a GPU of its own (/physical_device:GPU:0): hide it with CUDA_VISIBLE_DEVICES=-1\n"
    )


@pytest.mark.slow
def test_the_environment_enables_it_after_tensorflow_was_imported(run: Run) -> None:
    code = (
        "import tensorflow as tf\n"
        "from stoker import software_gpu, errors\n"
        "assert software_gpu.enable_from_environment()\n"
        "print(len(tf.config.list_physical_devices('GPU')), software_gpu.counters().profile)\n"
        "software_gpu.enable(2, '64MiB', {'base': 't4', 'name': 'mine'})\n"
        "try: software_gpu.enable(3)\n"
        "except errors.UsageError as error: print(error)"
    )
    asked = software_gpu.environment_for(2, "64MiB", {"base": "t4", "name": "mine"})
    environment = {**os.environ, **asked}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    first, second = done.stdout.splitlines()
    assert first == "2 mine"
    assert second.startswith("the software GPU is already on")


@pytest.mark.slow
def test_the_example_shows_what_one_debug_line_costs(run: Run) -> None:
    command = [sys.executable, str(ROOT / "examples/software_gpu/one_debug_line.py"), "--steps", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
    rows = {line[:26].strip(): line[26:].split() for line in done.stdout.splitlines() if line[26:27] == " "}
    names = ("no debug line", "float(loss)", "norms of all gradients", "the same on the device")
    plain, scalar, norms, repaired = (rows[name] for name in names)
    assert [row[3] for row in (plain, scalar, norms, repaired)] == ["1", "5", "17", "5"]
    assert [row[4] for row in (plain, scalar, norms, repaired)] == ["0.0", "0.0", "256.0", "0.0"]
    # A read of 16 MiB takes far longer than one of a scalar.
    assert float(norms[5]) > 30 * float(scalar[5])
    # The copies alone take nine times as long as the step, whatever this machine does.
    assert float(norms[0].rstrip("%")) < 20
    assert float(plain[0].rstrip("%")) > 3 * float(norms[0].rstrip("%"))
