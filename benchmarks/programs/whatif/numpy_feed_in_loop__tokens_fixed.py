"""The repair of numpy_feed_in_loop__tokens.py: the arrays become tensors once."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)

rng = np.random.default_rng(0)
tokens = tf.constant(rng.integers(0, 5000, (256, 8192)), tf.int32)
weights = tf.constant(rng.random((256, 8192)), tf.float32)
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
    batch = tokens[start : start + 64]
    weight = weights[start : start + 64]
    loss = train_step(batch, weight)

print(f"loss {float(loss):.2f}")
