"""Fixes verified by running: the repaired program computes the same and is faster, or is put back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from stoker.cli import main
from tests.support import HANGS_S, wait_until

SLOW = """import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(7)
x_train = np.random.default_rng(0).normal(size=(1024, 32)).astype("float32")
y_train = (x_train.sum(axis=1, keepdims=True) > 0).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train)).batch(16)
model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)])
model.build((None, 32))
optimizer = tf.keras.optimizers.Adam(1e-2)
optimizer.build(model.trainable_variables)
loss_fn = tf.keras.losses.BinaryCrossentropy(from_logits=True)
weights = np.full((1,), 0.5, "float32")


def train_step(x, y, weight):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True)) * weight[0]
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


for epoch in range(4):
    total = 0.0
    for x, y in dataset:
        weight = tf.convert_to_tensor(weights)
        total += train_step(x, y, weight)
    print("epoch", epoch, "loss", float(total))

scores = []
for row in x_train[:30]:
    scores.append(model.predict(row[None], verbose=0)[0, 0])
print("mean score", float(np.mean(scores)))
"""
# A program whose results a fix would change; what it imports is a file beside it, so it runs in no time.
CHANGING = """import keras

keras.backend.set_floatx("float64")
print("bits", keras.bits)
"""
KERAS = """import sys

bits = 0


class backend:
    @staticmethod
    def set_floatx(name):
        sys.modules[__name__].bits = int(name.removeprefix("float"))
"""

RUNS = pytest.mark.parametrize("run", [1, 2], ids=["the first run", "the second run"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_repaired_program_computes_the_same_and_is_faster(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("stoker.cli.run")
    path = folder / "train.py"
    path.write_text(SLOW, encoding="utf-8")
    assert main(["fix", "--unsafe", "--verify", "--", "python", "train.py"]) == 0
    (verdict,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("same results, "))
    assert verdict.endswith("x faster")
    fixed = path.read_text(encoding="utf-8")
    for part in (
        ".prefetch(tf.data.AUTOTUNE)",
        "@tf.function\ndef train_step",
        "weights_tensor = tf.convert_to_tensor(weights)\nfor epoch",
        "model.predict_on_batch(row[None])",
    ):
        assert part in fixed


def test_a_program_that_would_change_is_put_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("stoker.cli.run")
    (folder / "keras.py").write_text(KERAS, encoding="utf-8")
    path = folder / "train.py"
    path.write_text(CHANGING, encoding="utf-8")
    assert main(["fix", "--unsafe", "--verify", "train.py"]) == 1
    out = capsys.readouterr().out
    assert "results differ: 64 became 32" in out
    assert (
        "put back\ntrain.py sets no seed, so its results may differ from run to run: call keras.utils." in out
    )
    assert path.read_text(encoding="utf-8") == CHANGING


@dataclass
class _Ended:
    code: int
    out: str
    err: str
    # The process id that the interrupted program had.
    pid: int


def _interrupt(folder: Path, run: int, send: Callable[[int], None]) -> _Ended:
    """Start a verification, and interrupt it while this run of its program waits. The file is as before."""
    program = f"""{CHANGING}
import os, pathlib, time
runs = pathlib.Path("runs.txt")
with runs.open("a") as file:
    file.write("x")
if runs.stat().st_size == {run}:
    pathlib.Path("pid").write_text(str(os.getpid()))
    pathlib.Path("waits").touch()
    time.sleep(1000)
"""
    (folder / "keras.py").write_text(KERAS, encoding="utf-8")
    path = folder / "train.py"
    path.write_text(program, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "stoker", "fix", "--unsafe", "--verify", "train.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Whoever started the tests in the background had SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        wait_until(lambda: (folder / "waits").exists() or process.poll() is not None)
        send(process.pid)
        said, complaint = process.communicate(timeout=HANGS_S)
    finally:
        process.kill()
    assert path.read_text(encoding="utf-8") == program
    return _Ended(process.returncode, said, complaint, int((folder / "pid").read_text()))


@RUNS
def test_ctrl_c_puts_the_files_back_and_says_so_in_a_line(folder: Path, run: int) -> None:
    # As the terminal does: to the command and everything that it has started.
    ended = _interrupt(folder, run, lambda pid: os.killpg(pid, signal.SIGINT))
    assert (ended.code, ended.out) == (130, "")
    assert ended.err == "\nstoker: interrupted; the files are as they were\n"


@RUNS
def test_sigterm_puts_the_files_back_and_ends_the_program(folder: Path, run: int) -> None:
    ended = _interrupt(folder, run, lambda pid: os.kill(pid, signal.SIGTERM))
    assert (ended.code, ended.out) == (143, "")
    assert ended.err == "stoker: terminated; the files are as they were\n"
    with pytest.raises(ProcessLookupError):
        os.kill(ended.pid, 0)


def test_nothing_is_run_when_there_is_nothing_to_fix(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "train.py").write_text("print(1)\n", encoding="utf-8")
    assert main(["fix", "--verify", "train.py"]) == 0
    assert capsys.readouterr().out == "Nothing to fix.\n"
