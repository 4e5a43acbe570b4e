"""Keras' own training with `run_eagerly=True` left in from debugging."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
x, y = rng.normal(size=(3200, 40)).astype("float32"), rng.normal(size=(3200, 1)).astype("float32")
model = tf.keras.Sequential(
    [tf.keras.Input((40,)), tf.keras.layers.Dense(64, activation="tanh"), tf.keras.layers.Dense(1)]
)
model.compile("adam", "mse", run_eagerly="eager-train-step" not in REPAIRED)
model.fit(x, y, batch_size=32, epochs=2, verbose=0)  # stall: eager-train-step
