"""Rows kept as Python lists and made into tensors at each step of an eager training: two stalls in one."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(10)
rows = np.random.default_rng(10).normal(size=(20, 96, 30)).tolist()
resident = tf.constant(rows, tf.float32)
model = tf.keras.Sequential(
    [tf.keras.Input((29,)), tf.keras.layers.Dense(48, "relu"), tf.keras.layers.Dense(1)]
)
optimizer = tf.keras.optimizers.RMSprop(1e-3)


def train_step(batch):
    with tf.GradientTape() as tape:  # stall: eager-train-step
        guess = model(batch[:, :-1], training=True)[:, 0]
        loss = tf.reduce_mean(tf.abs(guess - batch[:, -1]))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


if "eager-train-step" in REPAIRED:
    train_step = tf.function(train_step)
for step in range(200):
    number = step % 20
    if "numpy-feed-in-loop" in REPAIRED:
        batch = resident[number]
    else:
        batch = tf.constant(rows[number], tf.float32)  # stall: numpy-feed-in-loop
    train_step(batch)
