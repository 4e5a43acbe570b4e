"""A Gaussian hidden Markov model fitted by gradient on the forward log-likelihood of sequences of many lengths."""

import sys

import numpy as np
import tensorflow as tf

mended = set(sys.argv[1:])
rng = np.random.default_rng(31)
STATES, SEQUENCES, PASSES = 4, 40, 24


def simulate(length):
    stay, z, out = 0.92, rng.integers(STATES), []
    for _ in range(length):
        if rng.random() > stay:
            z = rng.integers(STATES)
        out.append(2.5 * z + (0.4 + 0.2 * z) * rng.standard_normal())
    return tf.constant(np.array(out), tf.float32)


lengths = 70 + rng.permutation(SEQUENCES)
sequences = [simulate(n) for n in lengths]

start = tf.Variable(tf.zeros([STATES]))
trans = tf.Variable(2.0 * tf.eye(STATES))
means = tf.Variable(tf.linspace(-1.0, 8.0, STATES))
log_std = tf.Variable(tf.zeros([STATES]))
variables = [start, trans, means, log_std]
adam = tf.keras.optimizers.Adam(0.02)
adam.build(variables)


def log_likelihood(x):
    log_a = tf.nn.log_softmax(trans, axis=1)
    z = (x[:, None] - means) * tf.exp(-log_std)
    emit = -0.5 * z**2 - log_std - 0.9189385
    alpha = tf.nn.log_softmax(start) + emit[0]
    for t in tf.range(1, tf.shape(x)[0]):
        alpha = tf.reduce_logsumexp(alpha[:, None] + log_a, axis=0) + emit[t]
    return tf.reduce_logsumexp(alpha)


def fit_one(x):
    with tf.GradientTape() as tape:
        loss = -log_likelihood(x) / tf.cast(tf.size(x), tf.float32)
    adam.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


if "retrace-shape" in mended:
    fit_one = tf.function(fit_one, input_signature=[tf.TensorSpec([None], tf.float32)])
else:
    fit_one = tf.function(fit_one)

for epoch in range(PASSES):
    trace = []
    for x in sequences:
        loss = fit_one(x)  # stall: retrace-shape
        if "sync-in-loop" in mended:
            trace.append(loss)
        else:
            trace.append(float(loss))  # stall: sync-in-loop
    print("pass", epoch, "mean negative log-likelihood per point", float(tf.reduce_mean(tf.stack(trace))))
print("means", np.sort(means.numpy()))
