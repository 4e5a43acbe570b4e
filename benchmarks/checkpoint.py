"""How long a checkpoint holds training up: `Saver.save` against a plain copy of the same variables.

    make bench-checkpoint

A model with Adam, 50 MB of state; copies, saves and Keras' own way (weights and optimizer into an HDF5 file, in the
training's thread) take turns, medians are shown. Then how long the file takes behind training's back.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from stoker.train.checkpoint.options import Checkpoint
from stoker.train.checkpoint.saver import Saver
from stoker.train.variables import named_variables

ROUNDS = 15


def model_of_50_mb() -> keras.Model:
    model = keras.Sequential([keras.Input((1024,)), *[keras.layers.Dense(1024) for _ in range(4)]])
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    model = model_of_50_mb()
    variables = named_variables(model)
    size = sum(variable.numpy().nbytes for variable in variables.values()) / 1e6
    copies: list[float] = []
    saves: list[float] = []
    writes: list[float] = []
    keras_saves: list[float] = []
    with (
        tempfile.TemporaryDirectory() as directory,
        Saver(Checkpoint(directory, every=1), variables, "") as saver,
    ):
        saver.save(0, {}, wait=True)
        for step in range(1, ROUNDS + 1):
            copies.append(timed(lambda: [np.array(variable.numpy()) for variable in variables.values()]))
            start = time.perf_counter()
            saves.append(timed(lambda step=step: saver.save(step, {"step": step})))
            saver.wait()
            writes.append(time.perf_counter() - start)
            keras_saves.append(timed(lambda: model.save(Path(directory, "whole.keras"))))
    print(f"{size:.0f} MB of state, medians of {ROUNDS} turns")
    for what, times in (
        ("a plain copy of the variables", copies),
        ("Saver.save, which training waits for", saves),
        ("until the file is safe, behind its back", writes),
        ("model.save, which training waits for", keras_saves),
    ):
        print(f"  {what:<40} {statistics.median(times) * 1e3:7.1f} ms")
    ratios = [save / copy for save, copy in zip(saves, copies, strict=True)]
    print(f"  save / copy, median of the ratios of a turn {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
