"""A physics-informed net for a wave: points drawn in NumPy at every step, weights saved at every step."""

import sys
import tempfile

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
chance = np.random.default_rng(0)
net = tf.keras.Sequential(
    [tf.keras.Input((2,))]
    + [tf.keras.layers.Dense(64, activation="tanh") for _ in range(3)]
    + [tf.keras.layers.Dense(1)]
)
optimizer = tf.keras.optimizers.Adam(1e-3)
POINTS = 2000
grid = chance.uniform(0, 1, (40 * POINTS, 2))
prepared = tf.constant(grid, tf.float32)


@tf.function
def train_step(points):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(points)
            u = net(points)
        first = inner.gradient(u, points)
        residual = first[:, 0] + 2.0 * first[:, 1] - tf.sin(points[:, 0])
        loss = tf.reduce_mean(tf.square(residual)) + tf.reduce_mean(tf.square(u[:10]))
    gradients = outer.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    return loss


with tempfile.TemporaryDirectory() as directory:
    checkpoint = tf.train.Checkpoint(net=net)
    for step in range(100):
        start = step % 40 * POINTS
        if "numpy-feed-in-loop" in REPAIRED:
            points = prepared[start : start + POINTS]
        else:
            points = tf.convert_to_tensor(
                grid[start : start + POINTS], tf.float32
            )  # stall: numpy-feed-in-loop
        loss = train_step(points)
        if "checkpoint-in-loop" not in REPAIRED or step % 50 == 0:
            checkpoint.write(directory + "/net")  # stall: checkpoint-in-loop
