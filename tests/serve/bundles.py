"""A small bundle for tests that ask one; making it starts a process, so a module makes it once."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import keras
import numpy as np

import stoker

LABELS = ["cat", "dog", "eel"]
_NEEDS = {"litert": ["ai_edge_litert"], "onnx": ["onnxruntime", "onnx", "tf2onnx"]}
# The engines beside TensorFlow that can be had here.
ENGINES = [name for name, needs in _NEEDS.items() if all(map(importlib.util.find_spec, needs))]


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
    stoker.export(model, directory / "bundle", labels=LABELS, engines=ENGINES)
    return model, directory / "bundle"
