"""`stoker.fit` with the store against without: the same trainings take turns, wall time and CPU time.

Run by `make bench-store`.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

import stoker

ROUNDS = 9
EPOCHS = 12


def main() -> None:
    keras.utils.set_random_seed(1)
    x = np.random.default_rng(1).normal(size=(10_000, 100)).astype("float32")
    y = np.random.default_rng(2).integers(10, size=10_000)
    layers = [keras.layers.Dense(128, "relu"), keras.layers.Dense(128, "relu"), keras.layers.Dense(10)]
    model = keras.Sequential([keras.Input((100,)), *layers])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    taken: dict[str, list[tuple[float, float]]] = {"off": [], "on": []}
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        for number in range(ROUNDS + 1):
            for way in ("off", "on") if number % 2 else ("on", "off"):
                os.environ["STOKER_STORE"] = "off" if way == "off" else "sqlite:///.stoker/stoker.db"
                start = time.perf_counter(), time.process_time()
                stoker.fit(
                    model, x, y, epochs=EPOCHS, verbose=0, validation_split=0.1, plan="resident, none, 50"
                )
                if number:
                    taken[way].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    for place, name in enumerate(("wall", "CPU")):
        ratios = [on[place] / off[place] for on, off in zip(taken["on"], taken["off"], strict=True)]
        off = statistics.median(one[place] for one in taken["off"])
        print(
            f"stoker.fit of {off:.2f} s with the store against without, {name} time: "
            f"{statistics.median(ratios):.3f}x ({min(ratios):.3f} to {max(ratios):.3f})"
        )


if __name__ == "__main__":
    main()
