"""Checkpoints and plans that version 0.1.0 wrote are still read, and lead to the same bits."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from hashlib import blake2b
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from stoker.train.checkpoint import files
from stoker.train.planning import choices
from tests.train.old_files import runs

OLD = Path(__file__).parent / "old_files"


@pytest.mark.slow
@pytest.mark.parametrize("name", runs.RUNS)
@pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")
def test_a_run_goes_on_from_an_old_checkpoint(name: str, tmp_path: Path) -> None:
    directory = tmp_path / name
    shutil.copytree(OLD / name, directory)
    (checkpoint,) = directory.iterdir()
    run, _ = runs.RUNS[name]
    ends = runs.end_of(run(directory, None))
    assert checkpoint.name not in os.listdir(directory), "it was not pruned: the run saved nothing after it"
    whole = runs.end_of(run(tmp_path / "whole", None))
    with np.load(OLD / f"{name}.npz") as kept:
        then = list(kept.values())
    # The first half was computed on another machine. One that rounds as that did ends as it did, to the bit.
    rounding = 0 if all(map(np.array_equal, whole, then)) else 1e-3
    for end, uninterrupted, kept_end in zip(ends, whole, then, strict=True):
        np.testing.assert_allclose(end, uninterrupted, rtol=rounding, atol=rounding / 100)
        np.testing.assert_allclose(end, kept_end, rtol=rounding, atol=rounding / 100)


@pytest.mark.parametrize("name", runs.RUNS)
def test_the_old_checkpoints_are_of_the_middle_of_an_epoch(name: str) -> None:
    (checkpoint,) = (OLD / name).iterdir()
    details = files.read(checkpoint).index.details["progress"]
    assert details["begun"]
    assert 0 < details["pace"]["step"] < runs.ROWS // runs.BATCH


def test_an_old_plan_is_recalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is made as 0.1.0 made it: a new release forgets nothing."""
    monkeypatch.chdir(tmp_path)

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        return x * 2

    concrete = step.get_concrete_function(tf.TensorSpec([None], tf.float32))
    ops = [
        (op.type, [(str(out.shape), out.dtype.name) for out in op.outputs])
        for op in concrete.graph.get_operations()
    ]
    versions = ("0.1.0", tf.__version__, keras.__version__, platform.python_version())
    parts = (os.path.abspath(sys.argv[0]), ops, choices.machine(), versions, ("feed", 3))
    key = blake2b(repr(parts).encode(), digest_size=12).hexdigest()
    assert choices.key_of(concrete, "feed", 3) == key
    choices.DIRECTORY.mkdir(parents=True)
    shutil.copy(OLD / "plan.json", choices.DIRECTORY / f"{key}.json")
    assert choices.recall(key) == json.loads((OLD / "plan.json").read_text())
