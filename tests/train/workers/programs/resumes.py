"""One training run with checkpoints, which a test kills, asks to leave, and starts again with other numbers of workers.

resumes.py DIRECTORY [EPOCH]: at the end of that epoch the chief makes `DIRECTORY/reached` and waits for `DIRECTORY/go`.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import stoker

ROWS, BATCH, EPOCHS, EVERY, KEPT = 242, 12, 4, 8, 3


class Seen(keras.metrics.Metric):
    """How many rows were not seen exactly once since the epoch began; the last column of `y` has their numbers."""

    def __init__(self) -> None:
        super().__init__(name="wrong")
        self.counts = self.add_variable((ROWS,), "zeros", name="counts")

    def update_state(self, y: Any, _: Any, sample_weight: Any = None) -> None:
        self.counts.assign(self.counts + tf.reduce_sum(tf.one_hot(tf.cast(y[:, 1], tf.int32), ROWS), 0))

    def result(self) -> Any:
        return tf.reduce_sum(tf.cast(tf.not_equal(tf.convert_to_tensor(self.counts), 1.0), tf.float32))


class Gate(keras.callbacks.Callback):
    def __init__(self, directory: Path, epoch: int) -> None:
        super().__init__()
        self.directory, self.epoch = directory, epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        # While a checkpoint is being written no other is due: so one from each epoch is certain.
        while len(list((self.directory / "run").glob("*.stoker"))) < min(epoch + 1, KEPT):
            time.sleep(0.002)
        if epoch == self.epoch:
            (self.directory / "reached").touch()
            while not (self.directory / "go").exists():
                time.sleep(0.002)


def squared(y: Any, predicted: Any) -> Any:
    return tf.square(y[:, :1] - predicted)


def main() -> None:
    directory, gate = Path(sys.argv[1]), sys.argv[2:]
    strategy = stoker.strategy()
    keras.utils.set_random_seed(5)
    with strategy.scope():
        layers = keras.layers
        model = keras.Sequential(
            [
                keras.Input((4,)),
                layers.Dense(8, activation="tanh"),
                layers.BatchNormalization(),
                layers.Dropout(0.2),
                layers.Dense(1),
            ]
        )
        model.compile(keras.optimizers.Adam(0.01), squared, metrics=[Seen()])
    x = np.random.default_rng(1).normal(size=(ROWS, 4)).astype("float32")
    y = np.stack([x.sum(1), np.arange(ROWS)], 1).astype("float32")
    callbacks = [Gate(directory, int(gate[0]))] if gate else []
    history = stoker.fit(
        model,
        x,
        y,
        batch_size=BATCH,
        epochs=EPOCHS,
        verbose=0,
        validation_data=(x, y),
        callbacks=callbacks,
        checkpoint=stoker.Checkpoint(directory / "run", every=EVERY, keep=KEPT),
    )
    variables = [*model.weights, *model.optimizer.variables]
    bits = hashlib.blake2b(b"".join(one.numpy().tobytes() for one in variables)).hexdigest()
    found = {"bits": bits, "history": history.history}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
