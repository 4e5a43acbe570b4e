"""Word vectors: pairs and negatives drawn in NumPy and converted at every step; the rate of learning a Python float."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
chance = np.random.default_rng(0)
WORDS, SIZE = 5000, 64
inside, outside = tf.Variable(tf.random.normal([WORDS, SIZE])), tf.Variable(tf.zeros([WORDS, SIZE]))
pairs = chance.integers(0, WORDS, (256 * 150, 12))
resident = tf.constant(pairs, tf.int32)


@tf.function
def train_step(batch, rate):
    word, others = batch[:, 0], batch[:, 1:]
    with tf.GradientTape() as tape:
        scores = tf.einsum("bd,bnd->bn", tf.gather(inside, word), tf.gather(outside, others))
        wanted = tf.one_hot(tf.zeros_like(word), 11)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(wanted, scores))
    for variable, gradient in zip([inside, outside], tape.gradient(loss, [inside, outside])):
        variable.scatter_sub(tf.IndexedSlices(rate * gradient.values, gradient.indices))
    return loss


for step in range(150):
    rate = round(0.1 * (1 - step // 15 / 40), 4)
    if "retrace-python-arg" in REPAIRED:
        rate = tf.constant(rate, tf.float32)
    if "numpy-feed-in-loop" in REPAIRED:
        batch = resident[step * 256 : step * 256 + 256]
    else:
        chosen = pairs[step * 256 : step * 256 + 256].tolist()
        batch = tf.convert_to_tensor(chosen, tf.int32)  # stall: numpy-feed-in-loop
    loss = train_step(batch, rate)  # stall: retrace-python-arg
