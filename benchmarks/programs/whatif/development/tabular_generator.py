"""A table fed by from_generator, row by row, with a cheap map on each row; rows are standardised in the map."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
table = np.random.default_rng(0).normal(size=(20000, 24)).astype("float32")
target = table[:, :1] * 2


def rows():
    for x, y in zip(table, target):
        yield x, y


def standardised(x, y):
    return (x - 0.1) / 1.1, y


spec = (tf.TensorSpec((24,)), tf.TensorSpec((1,)))
if "python-input-pipeline" in REPAIRED:
    data = tf.data.Dataset.from_tensor_slices((table, target)).batch(128).map(standardised)
else:
    data = tf.data.Dataset.from_generator(rows, output_signature=spec)  # stall: python-input-pipeline
    data = data.map(standardised).batch(128)
data = data.prefetch(2)
model = tf.keras.Sequential(
    [tf.keras.Input((24,)), tf.keras.layers.Dense(128, activation="relu"), tf.keras.layers.Dense(1)]
)
model.compile("adam", "mse")
model.fit(data, epochs=1, verbose=0)
