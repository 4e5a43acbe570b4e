"""Gaussian-process regression: kernel hyper-parameters by gradient ascent on the evidence, with an annealed jitter."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = frozenset(sys.argv[1:])
rng = np.random.default_rng(12)

n, d, iterations = 560, 5, 80
X = tf.constant(rng.uniform(-2, 2, (n, d)))
y = tf.constant(np.sin(2 * X[:, 0]) + 0.5 * X.numpy()[:, 1] ** 2 + 0.1 * rng.standard_normal(n))[:, None]
y = y - tf.reduce_mean(y)

log_scale = tf.Variable(tf.zeros([d], tf.float64))
log_amp = tf.Variable(tf.constant(0.0, tf.float64))
log_noise = tf.Variable(tf.constant(-1.0, tf.float64))
params = [log_scale, log_amp, log_noise]
velocity = [tf.Variable(tf.zeros_like(p)) for p in params]


def kernel(a, b):
    a, b = a / tf.exp(log_scale), b / tf.exp(log_scale)
    sq = tf.reduce_sum(a**2, 1)[:, None] + tf.reduce_sum(b**2, 1)[None] - 2 * tf.matmul(a, b, transpose_b=True)
    r = tf.sqrt(tf.maximum(sq, 0.0) + 1e-12)
    return tf.exp(2 * log_amp) * (1 + np.sqrt(3.0) * r) * tf.exp(-np.sqrt(3.0) * r)


@tf.function
def ascend(jitter, rate):
    with tf.GradientTape() as tape:
        cov = kernel(X, X) + (tf.exp(2 * log_noise) + jitter) * tf.eye(n, dtype=tf.float64)
        chol = tf.linalg.cholesky(cov)
        white = tf.linalg.triangular_solve(chol, y)
        nll = 0.5 * tf.reduce_sum(white**2) + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(chol))) + 0.919 * n
    for p, v, g in zip(params, velocity, tape.gradient(nll, params)):
        v.assign(0.9 * v - rate * g / n)
        p.assign_add(v)
    return nll


for i in range(iterations):
    jitter = 1e-2 * 0.95**i + 1e-6
    rate = 0.1 / (1 + i / 100)
    if "retrace-python-arg" in REPAIRED:
        nll = ascend(tf.constant(jitter, tf.float64), tf.constant(rate, tf.float64))
    else:
        nll = ascend(jitter, rate)  # stall: retrace-python-arg
    if i % 16 == 0:
        tf.print("iteration", i, "negative log evidence", nll)
tf.print("final", nll, "length scales", tf.exp(log_scale), "noise", tf.exp(log_noise))
