"""A well-made Gray-Scott simulation with nothing to repair: a hundred updates are made within each compiled call."""

import numpy as np
import tensorflow as tf

SIZE = 192
rng = np.random.default_rng(3)
u0 = np.ones((1, SIZE, SIZE, 1), "float32")
v0 = np.zeros((1, SIZE, SIZE, 1), "float32")
for r, c in rng.integers(20, SIZE - 20, size=(12, 2)):
    u0[:, r : r + 8, c : c + 8], v0[:, r : r + 8, c : c + 8] = 0.5, 0.25
kernel = tf.reshape(tf.constant([0.05, 0.2, 0.05, 0.2, -1.0, 0.2, 0.05, 0.2, 0.05]), [3, 3, 1, 1])


def laplacian(z):
    z = tf.concat([z[:, -1:], z, z[:, :1]], axis=1)
    z = tf.concat([z[:, :, -1:], z, z[:, :, :1]], axis=2)
    return tf.nn.conv2d(z, kernel, strides=1, padding="VALID")


@tf.function
def simulate(u, v, updates):
    for _ in tf.range(updates):
        uvv = u * v * v
        u, v = u + laplacian(u) - uvv + 0.037 * (1.0 - u), v + 0.5 * laplacian(v) + uvv - 0.097 * v
    return u, v


u, v = tf.constant(u0), tf.constant(v0)
for step in range(120):
    u, v = simulate(u, v, tf.constant(100))
    if step % 30 == 0:
        print("after", (step + 1) * 100, "updates, mean v", float(tf.reduce_mean(v)))
