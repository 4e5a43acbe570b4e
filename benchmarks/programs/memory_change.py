"""A small Keras model, trained for a few steps with a change that may save memory: a program of memory_changes.py.

With --device-memory it runs on a software GPU of that size and prints its counted peak.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--change", default="")
parser.add_argument("--parts", type=int, default=1)
parser.add_argument("--device-memory")
options = parser.parse_args()
if options.device_memory:
    from stoker import software_gpu

    software_gpu.enable(memory=options.device_memory)

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

STEPS = 3
WORDS, LENGTH = 2000, 48
layers = keras.layers


def mlp() -> Any:
    hidden = [layers.Dense(512, activation="relu") for _ in range(4)]
    return keras.Sequential([keras.Input((784,)), *hidden, layers.Dense(10)])


def cnn() -> Any:
    return keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(10),
        ]
    )


def residual() -> Any:
    inputs = x = keras.Input((24, 24, 16))
    for _ in range(3):
        y = layers.Conv2D(16, 3, padding="same", use_bias=False)(x)
        y = layers.Activation("relu")(layers.BatchNormalization()(y))
        x = layers.Add()([x, layers.Conv2D(16, 3, padding="same")(y)])
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def separable() -> Any:
    inputs = x = keras.Input((32, 32, 3))
    for filters in (32, 64, 128):
        x = layers.SeparableConv2D(filters, 3, strides=2, padding="same")(x)
        x = layers.Activation("swish")(layers.BatchNormalization()(x))
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def unet() -> Any:
    inputs = keras.Input((32, 32, 3))
    upper = layers.Conv2D(16, 3, padding="same", activation="relu")(inputs)
    lower = layers.Conv2D(32, 3, padding="same", activation="relu")(layers.MaxPooling2D()(upper))
    joined = layers.Concatenate()([upper, layers.UpSampling2D()(lower)])
    last = layers.Conv2D(16, 3, padding="same", activation="relu")(joined)
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalMaxPooling2D()(last)))


def autoencoder() -> Any:
    widths = (512, 128, 32, 128, 512)
    hidden = [layers.Dense(width, activation="gelu") for width in widths]
    return keras.Sequential([keras.Input((784,)), *hidden, layers.Dropout(0.1), layers.Dense(784)])


def lstm() -> Any:
    return keras.Sequential(
        [
            keras.Input((LENGTH,), dtype="int32"),
            layers.Embedding(WORDS, 64),
            layers.LSTM(64),
            layers.Dense(10),
        ]
    )


def gru() -> Any:
    both = layers.Bidirectional(layers.GRU(48, return_sequences=True))
    return keras.Sequential(
        [
            keras.Input((LENGTH,), dtype="int32"),
            layers.Embedding(WORDS, 48),
            both,
            layers.GlobalMaxPooling1D(),
            layers.Dense(10),
        ]
    )


def transformer() -> Any:
    inputs = keras.Input((LENGTH,), dtype="int32")
    x = layers.Embedding(WORDS, 64)(inputs)
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 16)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(64)(layers.Dense(128, activation="gelu")(x)))
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def text_cnn() -> Any:
    inputs = keras.Input((LENGTH,), dtype="int32")
    words = layers.Embedding(WORDS, 64)(inputs)
    found = [
        layers.GlobalMaxPooling1D()(layers.Conv1D(64, size, activation="relu")(words)) for size in (2, 3, 4)
    ]
    return keras.Model(inputs, layers.Dense(10)(layers.Concatenate()(found)))


MODELS = (mlp, cnn, residual, separable, unet, autoencoder, lstm, gru, transformer, text_cnn)


def make_optimizer() -> Any:
    """Return Adam, or what the change asks for in its place."""
    if options.change == "sgd":
        return keras.optimizers.SGD(0.001)
    if options.change == "adafactor":
        return keras.optimizers.Adafactor(0.001)
    parts = options.parts if options.parts > 1 else None
    return keras.optimizers.Adam(0.001, gradient_accumulation_steps=parts)


def main() -> None:
    if options.change == "mixed-precision":
        keras.mixed_precision.set_global_policy("mixed_float16")
    model = {make.__name__: make for make in MODELS}[options.model]()
    outputs = model.output_shape[-1]
    model.compile(make_optimizer(), "mse")
    rows = -(-options.batch // options.parts)
    shape = (rows, *model.input_shape[1:])
    random = np.random.default_rng(0)
    is_text = model.inputs[0].dtype == "int32"
    x = random.integers(0, WORDS, shape).astype("int32") if is_text else random.random(shape, dtype="float32")
    y = np.zeros((rows, outputs), "float32")
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat(STEPS * options.parts).batch(rows)
    model.fit(data, verbose=0)
    if options.device_memory:
        print("peak", tf.config.experimental.get_memory_info("GPU:0")["peak"], flush=True)


main()
# At once: no teardown, of which a process that has used TensorFlow has two seconds.
os._exit(0)
