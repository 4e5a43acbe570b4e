"""How fast `stoker.fit_many` is, against the same models trained one after another.

    make bench-many                               # K = 4, 8, 16, 32
    python benchmarks/many.py --members 8 --rounds 5 --epochs 20

Every round trains new models all ways, in an order that turns, making and tracing included: that is what a search
pays. The figure is the median of the ratios within a round, with the smallest and the largest, wall and CPU.
KerasTuner takes part where it is installed: its own search, and the same search through `fit_many`.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

import stoker

OURS = "fit_many"


def make(rate: float, seed: int, dropout: float = 0.1) -> keras.Model:
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [
            keras.Input((16,)),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dropout(dropout, seed=seed),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(rate), "mse", metrics=["mae"])
    return model


def ways(configs: list[dict[str, Any]], epochs: int) -> dict[str, Callable[[], object]]:
    random = np.random.default_rng(0)
    x = random.standard_normal((2048, 16)).astype("float32")
    y = (x[:, :1] + random.standard_normal((2048, 1))).astype("float32")
    how: dict[str, Any] = {"epochs": epochs, "validation_data": (x[:512], y[:512]), "verbose": 0}

    def one_after_another(fit: Callable[..., object]) -> Callable[[], object]:
        return lambda: [fit(make(**config), x, y, **how) for config in configs]

    found: dict[str, Callable[[], object]] = {
        OURS: lambda: stoker.fit_many(make, configs, x, y, **how),
        "stoker.fit, one after another": one_after_another(stoker.fit),
        "Keras fit, one after another": one_after_another(
            lambda model, *data, **rest: model.fit(*data, **rest)
        ),
    }
    if importlib.util.find_spec("keras_tuner") is not None:
        found["KerasTuner, its own search"] = lambda: _search(
            configs, lambda tuner: tuner.search(x, y, **how)
        )
        found["KerasTuner, through fit_many"] = lambda: _search(
            configs,
            lambda tuner: stoker.search_with_keras_tuner(tuner, x, y, at_once=len(configs), **how),
        )
    return found


def _search(configs: list[dict[str, Any]], run: Callable[[Any], object]) -> None:
    import keras_tuner

    def build(given: Any) -> keras.Model:
        number = given.Int("number", 0, len(configs) - 1)
        return make(**configs[number])

    with tempfile.TemporaryDirectory() as directory:
        tuner = keras_tuner.GridSearch(build, "val_loss", max_trials=len(configs), directory=directory)
        run(tuner)


def measure(count: int, epochs: int, rounds: int, *, differing: bool) -> None:
    configs: list[dict[str, Any]] = [{"rate": 1e-3 * (1 + n), "seed": n} for n in range(count)]
    if differing:
        configs = [{**one, "dropout": 0.1 + 0.4 * n / count} for n, one in enumerate(configs)]
    runs = ways(configs, epochs)
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    names = list(runs)
    for number in range(rounds + 1):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            begin = time.perf_counter(), time.process_time()
            runs[name]()
            took[name].append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    what = "rates, seeds and dropout" if differing else "rates and seeds"
    print(f"\n{count} members, {epochs} epochs of 64 steps, {what} differ")
    for name in names:
        # The first round warms the process up.
        pairs = list(zip(took[name], took[OURS], strict=True))[1:]
        wall, cpu = ([one[part] / ours[part] for one, ours in pairs] for part in (0, 1))
        seconds = statistics.median(one[0] for one, _ in pairs)
        print(
            f"  {name:32s} {seconds:6.2f} s   fit_many is {statistics.median(wall):.1f}x as fast "
            f"({min(wall):.1f} to {max(wall):.1f}), CPU {statistics.median(cpu):.1f}x",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, nargs="+", default=[4, 8, 16, 32])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for count in given.members:
        for differing in (False, True):
            measure(count, given.epochs, given.rounds, differing=differing)


if __name__ == "__main__":
    main()
