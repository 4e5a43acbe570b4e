"""What `benchmarks/fit.py` trains: six programs, from steps of microseconds to a stream that is read from files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

RANDOM = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    """A model and its data: arrays, or a dataset. `epochs` are timed in one round."""

    title: str
    model: Callable[[], keras.Model]
    data: Callable[[Path], Any]
    batch: int
    steps: int
    epochs: int
    limit: bool = False
    plan: str | None = None


def compiled(model: keras.Model, optimizer: Any, loss: Any) -> keras.Model:
    model.compile(optimizer, loss)
    return model


def classes() -> keras.losses.Loss:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def mlp(inputs: int = 100, *widths: int) -> keras.Model:
    layers = [keras.layers.Dense(width, "relu") for width in widths or (128, 128)]
    return compiled(
        keras.Sequential([keras.Input([inputs]), *layers, keras.layers.Dense(10)]), "adam", classes()
    )


def linear() -> keras.Model:
    return compiled(keras.Sequential([keras.Input([20]), keras.layers.Dense(1)]), "sgd", "mse")


def cnn() -> keras.Model:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input([32, 32, 3]),
            layers.RandomFlip("horizontal"),
            layers.RandomTranslation(0.1, 0.1),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )
    return compiled(model, "adam", classes())


def text() -> keras.Model:
    layers = keras.layers
    vectorize = layers.TextVectorization(1000, output_sequence_length=32)
    vectorize.adapt(sentences())
    inputs = keras.Input([], dtype="string")
    hidden = layers.Embedding(1000, 32)(vectorize(inputs))
    hidden = layers.Bidirectional(layers.LSTM(32))(hidden)
    return compiled(keras.Model(inputs, layers.Dense(10)(hidden)), "adam", classes())


def sentences(count: int = 512) -> np.ndarray:
    words = RANDOM.integers(0, 2000, size=(count, 32))
    return np.array([" ".join(f"w{word}" for word in row) for row in words], dtype=object)


def rows(count: int, *shape: int) -> tuple[np.ndarray, np.ndarray]:
    return RANDOM.normal(size=(count, *shape)).astype("float32"), RANDOM.integers(0, 10, size=count)


def records(directory: Path) -> tf.data.Dataset:
    """32,768 rows of 256 numbers in four files, parsed as they are read."""
    x, y = rows(32_768, 256)
    names = [str(directory / f"part-{number}.tfrecord") for number in range(4)]
    for number, name in enumerate(names):
        with tf.io.TFRecordWriter(name) as writer:
            for row, label in zip(x[number::4], y[number::4], strict=True):
                feature = {
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=row)),
                    "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                }
                writer.write(
                    tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
                )
    spec = {"x": tf.io.FixedLenFeature([256], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}

    def parse(batch: Any) -> Any:
        parsed = tf.io.parse_example(batch, spec)
        return parsed["x"], parsed["y"]

    read = tf.data.TFRecordDataset(names).shuffle(512).batch(64, drop_remainder=True)
    return read.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


CASES = {
    "mlp": Case("MLP 100-128-128-10, batch 32", mlp, lambda _: rows(10_000, 100), 32, 313, 3, limit=True),
    "linear": Case(
        "linear regression, batch 32",
        linear,
        lambda _: (rows(10_000, 20)[0], RANDOM.normal(size=(10_000, 1)).astype("float32")),
        32,
        313,
        3,
        limit=True,
    ),
    "wide": Case(
        "wide MLP 512-1024-1024-10, batch 256",
        lambda: mlp(512, 1024, 1024),
        lambda _: rows(2048, 512),
        256,
        8,
        3,
        limit=True,
    ),
    "cnn": Case("CNN on 32x32 with augmentation, batch 64", cnn, lambda _: rows(1024, 32, 32, 3), 64, 16, 2),
    "text": Case(
        "text, bidirectional LSTM, batch 32",
        text,
        lambda _: (sentences(), RANDOM.integers(0, 10, size=512)),
        32,
        16,
        2,
    ),
    "stream": Case("MLP streamed from TFRecords, batch 64", lambda: mlp(256, 128, 128), records, 64, 512, 2),
}
