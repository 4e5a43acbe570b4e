"""Short jobs: the whole call, tracing and all, of `stoker.fit` and `stoker.evaluate` against Keras.

    python benchmarks/short_jobs.py [--rounds 7] [--only vae ...]

Every round makes a new model for each, so that every call is a first one; who comes first changes. The figures are
medians over the rounds, in wall time and in CPU time of the process, and the ratio is Keras' time over Stoker's: above
1 Stoker is the quicker.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

import stoker

L = keras.layers
RANDOM = np.random.default_rng(0)


@dataclass
class Job:
    """A model and what it is trained on; with `evaluates` only the evaluation after a training is measured."""

    model: Callable[[], Any]
    x: Any
    y: Any
    options: dict[str, Any] = field(default_factory=dict)
    evaluates: bool = False


def transformer() -> Any:
    """Text: embedding, two blocks of attention, pooling."""
    inputs = keras.Input((64,), dtype="int32")
    x = L.Embedding(2000, 32)(inputs)
    for _ in range(2):
        x = L.LayerNormalization()(x + L.MultiHeadAttention(2, 16)(x, x))
        x = L.LayerNormalization()(x + L.Dense(32)(L.Dense(64, "relu")(x)))
    outputs = L.Dense(2, "softmax")(L.Dropout(0.1)(L.GlobalAveragePooling1D()(x)))
    model = keras.Model(inputs, outputs)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


class VAE(keras.Model):
    """A variational autoencoder with a step of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = keras.Sequential([L.Dense(128, "relu"), L.Dense(16)])
        self.decoder = keras.Sequential([L.Dense(128, "relu"), L.Dense(196, "sigmoid")])
        self.seed = keras.random.SeedGenerator(1)
        self.total = keras.metrics.Mean("loss")

    @property
    def metrics(self) -> list[Any]:
        return [self.total]

    def call(self, x: Any) -> Any:
        return self.decoder(self.encoder(x)[:, :8])

    def train_step(self, x: Any) -> Any:
        x = x[0] if isinstance(x, tuple) else x
        with tf.GradientTape() as tape:
            mean, spread = tf.split(self.encoder(x), 2, axis=1)
            drawn = mean + tf.exp(0.5 * spread) * keras.random.normal(tf.shape(mean), seed=self.seed)
            rebuilt = tf.reduce_mean(
                tf.reduce_sum(
                    keras.losses.binary_crossentropy(x[..., None], self.decoder(drawn)[..., None]), 1
                )
            )
            loss = rebuilt - 0.5 * tf.reduce_mean(tf.reduce_sum(1 + spread - mean**2 - tf.exp(spread), 1))
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
        self.total.update_state(loss)
        return {"loss": self.total.result()}


def vae() -> Any:
    model = VAE()
    model.compile("adam")
    return model


def character_rnn() -> Any:
    """The next character of a text, with an LSTM."""
    model = keras.Sequential(
        [keras.Input((40,), dtype="int32"), L.Embedding(60, 16), L.LSTM(64), L.Dense(60, "softmax")]
    )
    model.compile("rmsprop", "sparse_categorical_crossentropy")
    return model


def dense() -> Any:
    model = keras.Sequential([keras.Input((20,)), L.Dense(64, "relu"), L.Dense(64, "relu"), L.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
    return model


def ids(high: int, *shape: int) -> Any:
    return RANDOM.integers(0, high, shape).astype("int32")


def floats(*shape: int) -> Any:
    return RANDOM.random(shape, np.float32)


HELD_OUT = (floats(100, 20), floats(100, 1))
JOBS: dict[str, Job] = {
    "text transformer": Job(transformer, ids(2000, 640, 64), ids(2, 640), {"epochs": 2}),
    "VAE": Job(vae, floats(2000, 196), None, {"epochs": 2, "batch_size": 128}),
    "character RNN": Job(character_rnn, ids(60, 1000, 40), ids(60, 1000), {"epochs": 2, "batch_size": 128}),
    "one batch": Job(dense, floats(32, 20), floats(32, 1), {"epochs": 3}),
    "two batches": Job(dense, floats(50, 20), floats(50, 1), {"epochs": 3}),
    "one batch, transformer": Job(transformer, ids(2000, 32, 64), ids(2, 32), {"epochs": 2}),
    "with validation": Job(
        dense, floats(500, 20), floats(500, 1), {"epochs": 2, "validation_data": HELD_OUT}
    ),
    "evaluate after fit": Job(
        dense, floats(500, 20), floats(500, 1), {"epochs": 2, "validation_data": HELD_OUT}, evaluates=True
    ),
    "evaluate after fit, transformer": Job(
        transformer,
        ids(2000, 320, 64),
        ids(2, 320),
        {"validation_data": (ids(2000, 96, 64), ids(2, 96))},
        evaluates=True,
    ),
}


def measured(job: Job, ours: bool) -> tuple[float, float]:
    """Wall and CPU seconds of the call."""
    keras.backend.clear_session()
    model = job.model()
    begin = time.perf_counter(), time.process_time()
    if ours:
        stoker.fit(model, job.x, job.y, verbose=0, **job.options)
    else:
        model.fit(job.x, job.y, verbose=0, **job.options)
    if job.evaluates:
        x, y = job.options["validation_data"]
        begin = time.perf_counter(), time.process_time()
        if ours:
            stoker.evaluate(model, x, y, verbose=0)
        else:
            model.evaluate(x, y, verbose=0)
    return time.perf_counter() - begin[0], time.process_time() - begin[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*", help="names of jobs, or parts of them")
    options = parser.parse_args()
    print("| job | Keras, s | Stoker, s | wall | CPU |\n|---|---|---|---|---|")
    for name, job in JOBS.items():
        if options.only and not any(part in name for part in options.only):
            continue
        took: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        for number in range(-1, options.rounds):
            for ours in (True, False) if number % 2 else (False, True):
                seconds = measured(job, ours)
                if number >= 0:  # the first pair pays for TensorFlow's own start
                    took[ours].append(seconds)
        wall, cpu = (
            statistics.median(
                theirs[i] / mine[i] for theirs, mine in zip(took[False], took[True], strict=True)
            )
            for i in (0, 1)
        )
        keras_s, ours_s = (statistics.median(one[0] for one in took[ours]) for ours in (False, True))
        print(f"| {name} | {keras_s:.2f} | {ours_s:.2f} | {wall:.2f}x | {cpu:.2f}x |", flush=True)


if __name__ == "__main__":
    main()
