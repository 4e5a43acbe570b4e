"""Writes the files beside it: interrupted checkpoints, the weights the whole runs end with, and a remembered plan.

    PYTHONPATH=<the sources of 0.1.0>:<this repository> python -m tests.train.old_files.make

The files in the repository were made by version 0.1.0 and stay as they are: newer versions must read them.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import stoker
from stoker.train import remembered  # type: ignore[attr-defined]  # its name in 0.1.0
from tests.train.old_files import runs

HERE = Path(__file__).parent


def main() -> None:
    for name, (run, interrupt) in runs.RUNS.items():
        with tempfile.TemporaryDirectory() as whole:
            ends = runs.end_of(run(Path(whole), None))
        np.savez_compressed(HERE / f"{name}.npz", *ends)
        shutil.rmtree(HERE / name, ignore_errors=True)
        try:
            run(HERE / name, interrupt)
        except runs.Interrupted:
            (HERE / name / "lock").unlink()
    facts = {
        "versions": [stoker.__version__, tf.__version__, keras.__version__],
        "machine": remembered.machine(),
    }
    (HERE / "made_by.json").write_text(json.dumps(facts, indent=1) + "\n")
    _remember_a_plan()


def _remember_a_plan() -> None:
    """A choice by the clock, made by training long enough that XLA is tried."""
    x, y = runs.data()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, activation="softmax")])
        model.compile("sgd", "sparse_categorical_crossentropy")
        stoker.fit(model, x, y, 1, epochs=40, verbose=0)
        (plan,) = Path(".stoker/plans").iterdir()
        shutil.copy(plan, HERE / "plan.json")
        os.chdir(HERE)


if __name__ == "__main__":
    main()
