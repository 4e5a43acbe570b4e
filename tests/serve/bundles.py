"""A small bundle for tests that ask one; making it starts a process, so a module makes it once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np

import stoker

LABELS = ["cat", "dog", "eel"]


def classifier() -> keras.Model:
    """Four numbers and a word of two letters to one of three classes; made the same each time."""
    keras.utils.set_random_seed(3)
    numbers = keras.Input((4,), name="numbers")
    width = keras.Input((), name="width", dtype="int32")
    x = keras.layers.Concatenate()([numbers, keras.ops.cast(width, "float32")[:, None]])
    x = keras.layers.Dense(16, activation="relu")(x)
    return keras.Model({"numbers": numbers, "width": width}, keras.layers.Dense(3, activation="softmax")(x))


def rows(count: int, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "numbers": random.standard_normal((count, 4)).astype("float32"),
        "width": random.integers(0, 9, count).astype("int32"),
    }


def made(directory: Path) -> tuple[keras.Model, Path]:
    model = classifier()
    stoker.export(model, directory / "bundle", labels=LABELS)
    return model, directory / "bundle"
