"""A table of houses: rows through from_generator, each mapped alone; fit with a callback that keeps all weights."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
houses = np.random.default_rng(0).normal(size=(8000, 40)).astype("float32")
paid = houses[:, :3].sum(1).astype("float32")


class Keep(tf.keras.callbacks.Callback):
    """All weights after every batch, and how they lie."""

    def on_train_batch_end(self, batch, logs=None):  # stall: host-callback-per-batch
        if "host-callback-per-batch" in REPAIRED and batch % 50:
            return
        weights = [w.copy() for w in self.model.get_weights()]
        self.model.kept = [np.percentile(w, [1, 25, 50, 75, 99]) for w in weights]


def rows():
    for house, price in zip(houses, paid):
        yield house, price


if "python-input-pipeline" in REPAIRED:
    data = tf.data.Dataset.from_tensor_slices((houses, paid)).batch(64)
else:
    spec = (tf.TensorSpec((40,)), tf.TensorSpec(()))
    data = tf.data.Dataset.from_generator(rows, output_signature=spec)  # stall: python-input-pipeline
    data = data.batch(64)
data = data.map(lambda x, y: (tf.clip_by_value(x, -3, 3), y)).prefetch(2)
model = tf.keras.Sequential(
    [
        tf.keras.Input((40,)),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dense(1),
    ]
)
model.compile("adam", "mse")
model.fit(data, epochs=2, verbose=0, callbacks=[Keep()])
