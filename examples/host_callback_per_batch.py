"""A callback writes the whole history to a file after every batch, while the device waits.

The repair writes it at the end of each epoch.
"""

import json
import tempfile
import time
from pathlib import Path

import tensorflow as tf

tf.keras.utils.set_random_seed(0)


class HistoryFile(tf.keras.callbacks.Callback):
    """Keeps the losses so far in a JSON file that a dashboard reads."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.rows = []

    def on_train_batch_end(self, batch, logs=None):  # <-- the stall
        self.rows.append({"batch": batch, "time": time.time(), "loss": logs["loss"]})
        self.path.write_text(json.dumps(self.rows, indent=2))


inputs = tf.random.normal([8192, 512])
targets = tf.reduce_sum(inputs[:, :8], axis=1, keepdims=True)
model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu") for _ in range(2)])
model.add(tf.keras.layers.Dense(1))
model.compile(tf.keras.optimizers.SGD(0.001), "mse")

with tempfile.TemporaryDirectory() as directory:
    history = HistoryFile(Path(directory) / "history.json")
    model.fit(inputs, targets, batch_size=128, epochs=10, verbose=0, callbacks=[history])
    rows = json.loads(history.path.read_text())

print(f"{len(rows)} losses, last {rows[-1]['loss']:.3f}")
