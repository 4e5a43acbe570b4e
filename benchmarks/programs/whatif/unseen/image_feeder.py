"""Float64 images from NumPy handed to a compiled step, a fresh slice each time."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(9)
images = np.random.default_rng(9).random((640, 48, 48, 3))
resident = tf.constant(images, tf.float32)
kernel = tf.Variable(tf.random.normal([3, 3, 3, 4]) * 0.1)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.conv2d(x, kernel, 2, "SAME")))
    kernel.assign_sub(0.01 * tape.gradient(loss, kernel))
    return loss


for step in range(400):
    start = step % 10 * 64
    if "numpy-feed-in-loop" in REPAIRED:
        batch = resident[start : start + 64]
    else:
        batch = tf.convert_to_tensor(
            images[start : start + 64].astype("float32")
        )  # stall: numpy-feed-in-loop
    train_step(batch)
