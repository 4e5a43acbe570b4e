"""A regression so small that calling its compiled step costs more than the step."""

import sys

import tensorflow as tf

REPAIRED = set(sys.argv[1:])
x = tf.random.stateless_normal([64, 10], [7, 8])
y = tf.reduce_sum(x, axis=1, keepdims=True)
weights, bias = tf.Variable(tf.zeros([10, 1])), tf.Variable(0.0)
MANY = 50


def one_step(rate):
    error = tf.matmul(x, weights) + bias - y
    weights.assign_sub(rate * tf.matmul(x, error, transpose_a=True) / 64.0)
    bias.assign_sub(rate * tf.reduce_mean(error))


@tf.function
def train_step(rate):
    one_step(rate)


@tf.function
def train_steps(rate):
    for _ in tf.range(MANY):
        one_step(rate)


rate = tf.constant(0.01)
if "launch-bound" in REPAIRED:
    for step in range(120):
        train_steps(rate)
else:
    for step in range(120 * MANY):
        train_step(rate)  # stall: launch-bound
