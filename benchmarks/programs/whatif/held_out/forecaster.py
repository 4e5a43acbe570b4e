"""Forecasts for ten shops: a new compiled step for each shop and each round, rows fed as NumPy arrays."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
sales = np.random.default_rng(0).normal(size=(10, 400, 12))
resident = tf.constant(sales, tf.float32)
model = tf.keras.Sequential(
    [tf.keras.Input((11,)), tf.keras.layers.Dense(96, activation="relu"), tf.keras.layers.Dense(1)]
)
optimizer = tf.keras.optimizers.SGD(1e-3)


def made():
    def train_step(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(rows[:, :-1])[:, 0] - rows[:, -1]))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return tf.function(train_step)


one = made()
for step in range(120):
    if step % 8 == 0 and "tf-function-in-loop" not in REPAIRED:
        one = made()  # stall: tf-function-in-loop
    shop = step // 8 % 10
    if "numpy-feed-in-loop" in REPAIRED:
        rows = resident[shop]
    else:
        rows = tf.constant(sales[shop].tolist(), tf.float32)  # stall: numpy-feed-in-loop
    one(rows)
