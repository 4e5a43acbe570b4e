"""What `stoker export --int8` and `--float16` give: file, CPU time on LiteRT, and how far off, for three networks.

    python benchmarks/quantize.py

The weights are random, which is the hardest case for a softmax: no class stands out.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["STOKER_STORE"] = "off"

import keras
import numpy as np

import stoker
from stoker.errors import StokerError


def mlp(inputs: int, *widths: int) -> keras.Model:
    x = given = keras.Input((inputs,), name="x")
    for width in widths:
        x = keras.layers.Dense(width, activation="relu")(x)
    return keras.Model(given, keras.layers.Dense(10, activation="softmax")(x))


def cnn() -> keras.Model:
    x = given = keras.Input((32, 32, 3), name="x")
    for channels in (16, 32, 64):
        x = keras.layers.Conv2D(channels, 3, activation="relu", padding="same")(x)
        x = keras.layers.MaxPooling2D()(x)
    x = keras.layers.Dense(64, activation="relu")(keras.layers.Flatten()(x))
    return keras.Model(given, keras.layers.Dense(10, activation="softmax")(x))


def main() -> None:
    keras.utils.set_random_seed(1)
    cases = {
        "MLP 100-128-128-10": mlp(100, 128, 128),
        "MLP 512-2048-2048-10": mlp(512, 2048, 2048),
        "CNN 32x32x3, 3 convolutions": cnn(),
    }
    print("| model | asked | quantised | off (bound 0.01) | file, KiB | one row | 32 rows |")
    print("|---|---|---|---|---|---|---|")
    for name, model in cases.items():
        rows = np.random.default_rng(0).standard_normal((400, *model.input_shape[1:])).astype("float32")
        for kind in ("int8", "float16"):
            with tempfile.TemporaryDirectory() as directory:
                try:
                    made = stoker.export(model, Path(directory, "bundle"), quantize=kind, calibrate=rows)
                except StokerError as error:
                    print(f"| {name} | {kind} | {error} | | | | |")
                    continue
            said = made.description["engines"]["litert"]["quantized"]
            plain, size = (f"{one / 1024:,.0f}" for one in said["bytes"])
            left = (
                f", {len(said['float_layers'])} of {said['layers']} layers in float"
                if said["float_layers"]
                else ""
            )
            one, many = said["times_quicker"]
            sizes = f"{plain} to {size}"
            print(
                f"| {name} | {kind} | {said['scheme']}{left} | {said['off']:.2g} | {sizes}"
                f" | {one:.2f}x | {many:.2f}x |"
            )
    print("load", *(f"{one:.1f}" for one in os.getloadavg()))


if __name__ == "__main__":
    main()
