"""`stoker fix --verify` on the examples: the repaired program computes the same and is faster, or it is put back."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.support import ALL_CASES, ROOT, run

pytest.importorskip("tensorflow")
EXAMPLES = ROOT / "examples"


REPAIRS = [
    ("predict_in_loop", "model.predict_on_batch(row[None])"),
    ("eager_train_step", "@tf.function\n"),
    ("retrace_python_arg", "tf.constant(rate)"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "repair"), REPAIRS if ALL_CASES else REPAIRS[:1])
def test_a_repair_keeps_the_results_and_gains(name: str, repair: str, tmp_path: Path) -> None:
    program = tmp_path / f"{name}.py"
    shutil.copy(EXAMPLES / program.name, program)
    command = [sys.executable, "-m", "stoker", "fix", "--unsafe", "--verify", program.name]
    outcome = run(command, tmp_path)
    assert outcome.code == 0, outcome.stderr
    assert "same results" in outcome.stdout + outcome.stderr
    # Kept only because it was faster: what is not faster is put back.
    assert repair in program.read_text(encoding="utf-8")


RUN_EAGERLY = """\
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
x = np.random.default_rng(1).normal(size=(6400, 8)).astype("float32")
model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(16, "tanh"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse", run_eagerly=True)
history = model.fit(x, x[:, :1], batch_size=16, epochs=2, verbose=0)
print("loss", history.history["loss"][-1])
"""


@pytest.mark.skipif(not ALL_CASES, reason="takes as long as the examples")
def test_steps_of_fit_run_as_graphs_again(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RUN_EAGERLY, encoding="utf-8")
    command = [sys.executable, "-m", "stoker", "fix", "--unsafe", "--verify", program.name]
    outcome = run(command, tmp_path)
    assert outcome.code == 0, outcome.stderr
    assert "same results" in outcome.stdout + outcome.stderr
    assert 'model.compile("adam", "mse")' in program.read_text(encoding="utf-8")
