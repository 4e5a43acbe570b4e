"""fit with a callback that writes a line and the norms of all weights for every batch; a serial, dear map."""

import json
import sys
import tempfile

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)


class Log(tf.keras.callbacks.Callback):
    """One line of JSON for every batch."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def on_train_batch_end(self, batch, logs=None):  # stall: host-callback-per-batch
        if "host-callback-per-batch" in REPAIRED and batch % 50:
            return
        norms = [float(np.linalg.norm(w)) for w in self.model.get_weights()]
        spread = [np.histogram(w, 64)[0].tolist() for w in self.model.get_weights()]
        self.file.write(json.dumps({"batch": batch, "norms": norms, "spread": spread, **(logs or {})}) + "\n")
        self.file.flush()


def augmented(x, y):
    return tf.image.random_contrast(tf.image.resize(x, [28, 28]), 0.5, 1.5), y


pictures = np.random.default_rng(0).random((1200, 40, 40, 3)).astype("float32")
labels = np.random.default_rng(1).integers(0, 10, 1200)
data = tf.data.Dataset.from_tensor_slices((pictures, labels))
if "map-without-parallel-calls" in REPAIRED:
    data = data.map(augmented, num_parallel_calls=tf.data.AUTOTUNE).batch(16).prefetch(tf.data.AUTOTUNE)
else:
    data = data.map(augmented).batch(16)  # stall: map-without-parallel-calls
model = tf.keras.Sequential(
    [
        tf.keras.Input((28, 28, 3)),
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dense(10),
    ]
)
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
with tempfile.TemporaryFile("w") as file:
    model.fit(data, epochs=2, verbose=0, callbacks=[Log(file)])
