"""Logistic regression on a small customer table, with momentum written by hand and mini-batches of twenty rows."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])


def make_table(rows=4000, columns=12):
    rng = np.random.RandomState(42)
    x = rng.randn(rows, columns).astype(np.float32)
    p = 1 / (1 + np.exp(-x @ rng.randn(columns)))
    return tf.constant(x), tf.constant((rng.rand(rows) < p).astype(np.float32))


X, y = make_table()
BATCH = 20
w = tf.Variable(tf.zeros([12]))
b = tf.Variable(0.0)
vw = tf.Variable(tf.zeros([12]))
vb = tf.Variable(0.0)


def one_batch(i):
    start = (i * BATCH) % 4000
    xb, yb = X[start : start + BATCH], y[start : start + BATCH]
    with tf.GradientTape() as tape:
        logits = tf.linalg.matvec(xb, w) + b
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=yb, logits=logits))
    gw, gb = tape.gradient(loss, [w, b])
    vw.assign(0.9 * vw - 0.01 * gw)
    vb.assign(0.9 * vb - 0.01 * gb)
    w.assign_add(vw)
    b.assign_add(vb)
    return loss


@tf.function
def train(first, count):
    loss = 0.0
    for i in tf.range(first, first + count):
        loss = one_batch(i)
    return loss


train_one = tf.function(one_batch)

if "launch-bound" in REPAIRED:
    for step in range(0, 16000, 1000):
        loss = train(tf.constant(step), tf.constant(1000))
else:
    indices = tf.unstack(tf.range(16000))
    for step in range(16000):
        loss = train_one(indices[step])  # stall: launch-bound
accuracy = tf.reduce_mean(tf.cast((tf.linalg.matvec(X, w) + b > 0) == (y > 0.5), tf.float32))
print(f"last loss {float(loss):.4f}, accuracy {float(accuracy):.3f}")
