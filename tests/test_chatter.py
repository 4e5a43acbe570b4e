"""What TensorFlow prints about itself: left out by Stoker's own commands, never by `stoker run`."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stoker.chatter import LEVEL, is_chatter
from stoker.launch.view import JobView
from tests.support import HANGS_S, before_ledger

BANNER = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"
ONEDNN = "I0000 00:00:1794972353.351590   28531 port.cc:153] oneDNN custom operations are on. You may see"
BLOCK = """
import os, sys
from stoker.chatter import quiet_tensorflow
with quiet_tensorflow():
    os.write(2, f"{sys.argv[1]}\\n".encode())
    print("mine", file=sys.stderr)
    os.write(2, f"{sys.argv[2]}\\n".encode())
print("after", file=sys.stderr)
"""
LAST_WORDS = """
import os
from stoker.chatter import quiet_tensorflow
with quiet_tensorflow():
    os.write(2, b"F0000 00:00:1 1 cpu_feature_guard.cc:1] compiled to use AVX\\n")
    os.abort()
"""


def run(directory: Path, *words: str, level: str | None = None) -> subprocess.CompletedProcess[str]:
    """A Python process with its stderr as it is."""
    environment = {name: value for name, value in os.environ.items() if name != LEVEL}
    environment |= {} if level is None else {LEVEL: level}
    return subprocess.run(
        [sys.executable, *words],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )


def chatter(text: str) -> list[str]:
    return [line for line in text.splitlines() if is_chatter(line)]


@pytest.mark.parametrize(
    "line",
    [
        BANNER,
        ONEDNN,
        "2024-07-01 10:00:00.1: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.",
        "I0000 00:00:1 1 cpu_feature_guard.cc:227] This TensorFlow binary is optimized to use available CPU",
        "To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow with the",
        "E0000 00:00:1 1 cuda_fft.cc:467] Unable to register cuFFT factory: Attempting to register factory",
    ],
)
def test_lines_of_tensorflow_about_itself(line: str) -> None:
    assert is_chatter(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "epoch 1: loss 2.00",
        "oneDNN custom operations are on, says my program",
        "W0000 00:00:1 1 cpu_allocator_impl.cc:84] Allocation of 1234 exceeds 10% of free system memory.",
        "F0000 00:00:1 1 cpu_feature_guard.cc:1] compiled to use AVX, but these aren't available",
    ],
)
def test_everything_else_is_shown(line: str) -> None:
    assert not is_chatter(line)


@pytest.mark.parametrize(
    ("level", "shown"), [(None, ["mine", "after"]), ("0", [BANNER, "mine", ONEDNN, "after"])]
)
def test_the_block_filters_stderr_unless_all_lines_are_asked_for(
    tmp_path: Path, level: str | None, shown: list[str]
) -> None:
    assert run(tmp_path, "-c", BLOCK, BANNER, ONEDNN, level=level).stderr.splitlines() == shown


def test_the_last_words_of_a_process_that_aborts_are_shown(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", LAST_WORDS)
    assert done.returncode == -signal.SIGABRT
    assert done.stderr == "F0000 00:00:1 1 cpu_feature_guard.cc:1] compiled to use AVX\n"


@pytest.mark.slow
@pytest.mark.tensorflow
def test_stoker_run_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import tensorflow as tf\ntf.constant(1) + 1\n")
    plain = run(tmp_path, "train.py")
    under_stoker = run(tmp_path, "-m", "stoker", "run", "train.py")
    shown = chatter(before_ledger(under_stoker.stderr))
    assert [line.rpartition("] ")[2] for line in shown] == [
        line.rpartition("] ")[2] for line in chatter(plain.stderr)
    ]


@pytest.mark.tensorflow
def test_stoker_train_says_only_what_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    done = run(tmp_path, "-m", "stoker", "train", "table", "table.csv", "--target", "c")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.slow
@pytest.mark.tensorflow
def test_stoker_export_and_serve_say_only_what_is_their_own(tmp_path: Path) -> None:
    import keras

    keras.Sequential([keras.Input([2]), keras.layers.Dense(1)]).save(tmp_path / "model.keras")
    done = run(tmp_path, "-m", "stoker", "export", "model.keras", "bundle")
    assert (done.returncode, done.stderr) == (0, "")
    environment = {name: value for name, value in os.environ.items() if name != LEVEL}
    command = [sys.executable, "-m", "stoker", "serve", "bundle", "--port", "0", "--workers", "2"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        lines: list[str] = []
        while sum(line.endswith("ready\n") for line in lines) < 2:
            lines.append(server.stderr.readline())
            assert lines[-1], "the server ended"
        server.send_signal(signal.SIGTERM)
        lines += server.stderr.readlines()
    assert server.returncode == 0
    assert [line for line in lines if not line.startswith("stoker: ")] == []


def test_a_jobs_view_leaves_it_out_and_its_log_has_it(tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    view = JobView(tmp_path, out, err)
    view.begin([0], 0)
    view.show(0, "stderr", [BANNER, ONEDNN, "a warning of the program"])
    view.close()
    assert err.getvalue() == "[0] a warning of the program\n"
    log = (tmp_path / "worker-0.log").read_text().splitlines()
    assert log == [BANNER, ONEDNN, "a warning of the program"]
