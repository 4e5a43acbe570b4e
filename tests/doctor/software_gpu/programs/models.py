"""Keras models for a few steps: `cpu`, or `gpu` for the software GPU. Losses and launches as JSON.

The CPU's losses need a process without the device: as soon as Keras sees a GPU it picks cuDNN's layers, which
would then run there even under `tf.device("/CPU:0")`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from stoker.doctor import software_gpu

DEVICE = sys.argv[1]
if DEVICE == "gpu":
    software_gpu.enable(memory="4GiB")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from keras import layers  # noqa: E402

# With several, a busy machine decides in which order sums are added up, and batch normalisation makes much of it.
tf.config.threading.set_intra_op_parallelism_threads(1)

_random = np.random.RandomState(3)
IMAGES = _random.rand(16, 16, 16, 3).astype("float32")
LARGE_IMAGES = _random.rand(8, 32, 32, 3).astype("float32")
WORDS = np.concatenate([_random.randint(1, 50, (16, 7)), np.zeros((16, 3), int)], axis=1)


def mlp() -> Any:
    return [layers.Flatten(), layers.Dense(32, activation="relu"), layers.Dropout(0.0), layers.Dense(1)]


def cnn() -> Any:
    return [layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(), layers.Conv2D(8, 3), *mlp()]


def batch_norm() -> Any:
    return [layers.Conv2D(8, 3), layers.BatchNormalization(), layers.ReLU(), *mlp()]


def recurrent(layer: Any, masked: bool = False) -> Callable[[], Any]:
    return lambda: [layers.Embedding(50, 6, mask_zero=masked), layer(), layers.Dense(1)]


class Attention(keras.layers.Layer):
    """One block of self-attention over embedded words."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, 4)
        self.normalize = layers.LayerNormalization()

    def call(self, x: Any) -> Any:
        return keras.ops.mean(self.normalize(x + self.attention(x, x)), axis=1)


def sequential(make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: keras.Sequential(make())


def application(build: Any) -> Callable[[], Any]:
    return lambda: build(weights=None, input_shape=(32, 32, 3), classes=2)


MODELS: dict[str, tuple[Callable[[], Any], Any, dict[str, Any]]] = {
    "mlp": (sequential(mlp), IMAGES, {}),
    "mlp_compiled": (sequential(mlp), IMAGES, {"jit_compile": True}),
    "cnn": (sequential(cnn), IMAGES, {}),
    "batch_norm": (sequential(batch_norm), IMAGES, {}),
    "lstm": (sequential(recurrent(lambda: layers.LSTM(8))), WORDS, {}),
    "lstm_masked": (sequential(recurrent(lambda: layers.LSTM(8), masked=True)), WORDS, {}),
    "gru": (sequential(recurrent(lambda: layers.GRU(8))), WORDS, {}),
    "bidirectional": (sequential(recurrent(lambda: layers.Bidirectional(layers.LSTM(8)))), WORDS, {}),
    "two_layers": (
        lambda: keras.Sequential(
            [layers.Embedding(50, 6), layers.LSTM(8, return_sequences=True), layers.GRU(4), layers.Dense(1)]
        ),
        WORDS,
        {},
    ),
    "attention": (sequential(recurrent(Attention)), WORDS, {}),
    "mobilenet_v2": (application(keras.applications.MobileNetV2), LARGE_IMAGES, {}),
    "resnet50": (application(keras.applications.ResNet50), LARGE_IMAGES, {}),
}


def losses(name: str) -> list[float]:
    build, x, options = MODELS[name]
    keras.utils.set_random_seed(5)
    large = name in ("mobilenet_v2", "resnet50")
    width = 2 if large else 1
    y = np.linspace(0, 1, len(x) * width, dtype="float32").reshape(len(x), width)
    with tf.device(f"/{DEVICE.upper()}:0"):
        model = build()
        rate = 1e-6 if large else 1e-2
        model.compile(keras.optimizers.SGD(rate), "mse", **{"jit_compile": False, **options})
        # Deep and untrained, the large ones multiply rounding by thousands at every step: on the CPU alone,
        # with and without oneDNN, their third losses differ by several per cent. Two steps of a tiny rate show
        # forward, gradient and update.
        return [float(model.train_on_batch(x, y)) for _ in range(2 if large else 3)]


def measured(name: str) -> dict[str, Any]:
    if DEVICE == "cpu":
        return {"losses": losses(name)}
    software_gpu.reset()
    return {"losses": losses(name), "launches": software_gpu.counters().launches}


print(json.dumps({name: measured(name) for name in sys.argv[2:] or MODELS}))
