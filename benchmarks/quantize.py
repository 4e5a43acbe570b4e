"""What `stoker export --int8` and `--float16` give: file, CPU time on LiteRT, and how far off, for seven models.

    make bench-quantize

The weights are random, which is the hardest case for a softmax: no class stands out. The models of the table are made
from raw rows, as a recipe makes them.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["STOKER_STORE"] = "off"

import keras
import numpy as np

import stoker
from stoker.errors import StokerError

_ROWS = 400


@dataclass(frozen=True)
class Case:
    """A model, the rows it is calibrated with and held to, and the features of a table."""

    model: keras.Model
    rows: Any
    features: Any = None


def mlp(inputs: int, *widths: int) -> Case:
    x = given = keras.Input((inputs,), name="x")
    for width in widths:
        x = keras.layers.Dense(width, activation="relu")(x)
    model = keras.Model(given, keras.layers.Dense(10, activation="softmax")(x))
    return Case(model, np.random.default_rng(0).standard_normal((_ROWS, inputs)).astype("float32"))


def cnn() -> Case:
    x = given = keras.Input((32, 32, 3), name="x")
    for channels in (16, 32, 64):
        x = keras.layers.Conv2D(channels, 3, activation="relu", padding="same")(x)
        x = keras.layers.MaxPooling2D()(x)
    x = keras.layers.Dense(64, activation="relu")(keras.layers.Flatten()(x))
    model = keras.Model(given, keras.layers.Dense(10, activation="softmax")(x))
    return Case(model, np.random.default_rng(0).standard_normal((_ROWS, 32, 32, 3)).astype("float32"))


def _classify_words(numbers: Any) -> Any:
    x = keras.layers.Embedding(5000, 64)(numbers)
    x = keras.layers.Conv1D(128, 5, activation="relu")(x)
    x = keras.layers.Dense(64, activation="relu")(keras.layers.GlobalMaxPooling1D()(x))
    return keras.layers.Dense(4, activation="softmax")(x)


def words() -> Case:
    """Texts whose words the client has numbered."""
    given = keras.Input((100,), dtype="int32", name="words")
    rows = np.random.default_rng(0).integers(0, 5000, (_ROWS, 100)).astype("int32")
    return Case(keras.Model(given, _classify_words(given)), rows)


def texts() -> Case:
    """The same with raw texts."""
    known = [f"w{number}" for number in range(4000)]
    given = keras.Input((), dtype="string", name="text")
    numbers = keras.layers.TextVectorization(vocabulary=known, output_sequence_length=100)(given)
    drawn = np.random.default_rng(0).choice(known, (_ROWS, 100))
    return Case(
        keras.Model(given, _classify_words(numbers)), np.array([" ".join(row) for row in drawn], object)
    )


def table(directory: Path, kinds: str) -> Case:
    """A table of twenty columns of numbers, and one of categories: as numbers or as text."""
    random = np.random.default_rng(0)
    numbers = random.standard_normal((_ROWS, 20)).round(4)
    kind = random.integers(0, 5, _ROWS)
    cells = [
        [*map(str, row), f"{kinds}{one}", str(row.sum())] for row, one in zip(numbers, kind, strict=True)
    ]
    names = [*(f"n{place}" for place in range(20)), "kind", "target"]
    file = directory / f"table{kinds}.csv"
    file.write_text("\n".join(",".join(line) for line in [names, *cells]) + "\n")
    train = stoker.data.csv(file, label="target", batch_size=32, cache=False)
    inputs = train.features.inputs()
    x = train.features.encode(inputs)
    for width in (512, 512):
        x = keras.layers.Dense(width, activation="relu")(x)
    rows = [dict(zip(names, line, strict=True)) for line in cells]
    return Case(keras.Model(inputs, keras.layers.Dense(1, name="guess")(x)), rows, train)


def row_of(name: str, kind: str, case: Case) -> str:
    """Export this; return a row of the table."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory, "bundle")
        try:
            made = stoker.export(case.model, place, case.features, quantize=kind, calibrate=case.rows)
        except StokerError as error:
            assert not list(Path(directory).iterdir())
            return f"| {name} | {kind} | {error} | | | | |"
    said = made.description["engines"]["litert"]["quantized"]
    plain, size = (f"{one / 1024:,.0f}" for one in said["bytes"])
    left = (
        f", {len(said['float_layers'])} of {said['layers']} layers in float" if said["float_layers"] else ""
    )
    one, many = said["times_quicker"]
    return (
        f"| {name} | {kind} | {said['scheme']}{left} | {said['off']:.2g} | {plain} to {size}"
        f" | {one:.2f}x | {many:.2f}x |"
    )


def main() -> None:
    keras.utils.set_random_seed(1)
    with tempfile.TemporaryDirectory() as directory:
        cases = {
            "MLP 100-128-128-10": mlp(100, 128, 128),
            "MLP 512-2048-2048-10": mlp(512, 2048, 2048),
            "CNN 32x32x3, 3 convolutions": cnn(),
            "text as 100 word numbers, embedding and convolution": words(),
            "raw text": texts(),
            "table of numbers, 512-512": table(Path(directory), ""),
            "table with a category as text": table(Path(directory), "kind"),
        }
        print("| model | asked | quantised | off (bound 0.01) | file, KiB | one row | 32 rows |")
        print("|---|---|---|---|---|---|---|")
        for name, case in cases.items():
            for kind in ("int8", "float16"):
                print(row_of(name, kind, case), flush=True)
    print("load", *(f"{one:.1f}" for one in os.getloadavg()))


if __name__ == "__main__":
    main()
