"""Batches of tokens and their weights come as NumPy arrays at every step; the repair converts them once."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)

rng = np.random.default_rng(0)
tokens = rng.integers(0, 5000, (256, 8192))
weights = rng.random((256, 8192))
table = tf.Variable(tf.random.normal([5000, 4]))


@tf.function
def train_step(batch, weight):
    with tf.GradientTape() as tape:
        vectors = tf.gather(table, batch[:, :256])
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(vectors, axis=-1) - weight[:, :256]))
    gradient = tape.gradient(loss, table)
    table.scatter_sub(tf.IndexedSlices(0.1 * gradient.values, gradient.indices))
    return loss


for step in range(300):
    start = step % 4 * 64
    batch = tf.constant(tokens[start : start + 64], tf.int32)
    weight = tf.constant(weights[start : start + 64], tf.float32)
    loss = train_step(batch, weight)

print(f"loss {float(loss):.2f}")
