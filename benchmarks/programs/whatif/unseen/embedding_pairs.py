"""A matrix factorisation on plain variables: embeddings gathered and updated op by op, without Keras."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
rng = np.random.default_rng(2)
users = tf.constant(rng.integers(0, 3000, (50, 256)))
items = tf.constant(rng.integers(0, 2000, (50, 256)))
scores = tf.constant(rng.normal(size=(50, 256)).astype("float32"))
user_table = tf.Variable(tf.random.stateless_normal([3000, 32], [1, 2]) * 0.1)
item_table = tf.Variable(tf.random.stateless_normal([2000, 32], [3, 4]) * 0.1)
bias = tf.Variable(0.0)


def update(number):
    with tf.GradientTape() as tape:  # stall: eager-train-step
        u = tf.gather(user_table, users[number])
        v = tf.gather(item_table, items[number])
        error = tf.reduce_sum(u * v, axis=1) + bias - scores[number]
        loss = tf.reduce_mean(error * error) + 1e-4 * (tf.nn.l2_loss(u) + tf.nn.l2_loss(v))
    gradients = tape.gradient(loss, [user_table, item_table, bias])
    for variable, gradient in zip([user_table, item_table, bias], gradients):
        variable.assign_sub(0.05 * tf.convert_to_tensor(gradient))
    return loss


if "eager-train-step" in REPAIRED:
    update = tf.function(update)
for step in range(250):
    update(tf.constant(step % 50))
