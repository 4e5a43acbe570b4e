"""Keras fits a CNN on striped images while a callback keeps percentiles of all its weights."""

import sys

import keras
import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
keras.utils.set_random_seed(80)


class WeightWatch(keras.callbacks.Callback):
    """Percentiles and histograms of each kernel."""

    def __init__(self, every):
        super().__init__()
        self.every, self.records = every, []

    def on_train_batch_end(self, batch, logs=None):
        if batch % self.every:
            return
        record = {}
        for weight in self.model.trainable_variables:
            values = weight.numpy().ravel()  # stall: host-callback-per-batch
            record[weight.path] = (np.percentile(values, [5, 25, 50, 75, 95]), np.histogram(values, bins=50)[0])
        self.records.append((batch, record))


def stripes(n):
    rng = np.random.default_rng(80)
    angle = rng.integers(0, 4, n)
    yy, xx = np.mgrid[0:20, 0:20]
    theta = angle[:, None, None] * np.pi / 4
    wave = np.sin(np.cos(theta) * xx + np.sin(theta) * yy + rng.uniform(0, 6, (n, 1, 1)))
    return (wave + 0.5 * rng.normal(size=wave.shape)).astype("float32")[..., None], angle


images, angles = stripes(3200)
model = keras.Sequential(
    [
        keras.Input((20, 20, 1)),
        keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
train = tf.data.Dataset.from_tensor_slices((images, angles)).batch(32).cache().prefetch(tf.data.AUTOTUNE)
watch = WeightWatch(every=50 if "host-callback-per-batch" in REPAIRED else 1)
history = model.fit(train, epochs=5, verbose=0, callbacks=[watch])
print("accuracy", [round(a, 3) for a in history.history["accuracy"]], "records", len(watch.records))
