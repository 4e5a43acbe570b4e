"""Model-agnostic meta-learning (MAML) on sinusoid regression, with plain tf.Variables and second-order gradients."""

import sys

import numpy as np
import tensorflow as tf

FIXED = set(sys.argv[1:])
tf.random.set_seed(5)
RNG = np.random.default_rng(5)

META_STEPS, TASKS, SHOTS, WIDTH = 220, 4, 160, 192
INNER_LR = 0.02


def glorot(n_in, n_out):
    return tf.Variable(tf.random.normal([n_in, n_out]) * (2.0 / (n_in + n_out)) ** 0.5)


theta = [
    glorot(1, WIDTH), tf.Variable(tf.zeros([WIDTH])),
    glorot(WIDTH, WIDTH), tf.Variable(tf.zeros([WIDTH])),
    glorot(WIDTH, WIDTH), tf.Variable(tf.zeros([WIDTH])),
    glorot(WIDTH, 1), tf.Variable(tf.zeros([1])),
]
meta_opt = tf.keras.optimizers.Adam(1e-3)
meta_opt.build(theta)


def net(x, w):
    h = tf.nn.tanh(x @ w[0] + w[1])
    h = tf.nn.tanh(h @ w[2] + w[3])
    h = tf.nn.tanh(h @ w[4] + w[5])
    return h @ w[6] + w[7]


def mse(w, x, y):
    return tf.reduce_mean(tf.square(net(x, w) - y))


def meta_step(xs, ys, xq, yq):
    with tf.GradientTape() as outer:  # stall: eager-train-step
        losses = []
        for t in range(TASKS):
            with tf.GradientTape() as inner:
                support = mse(theta, xs[t], ys[t])
            grads = inner.gradient(support, theta)
            adapted = [w - INNER_LR * g for w, g in zip(theta, grads)]
            losses.append(mse(adapted, xq[t], yq[t]))
        total = tf.add_n(losses) / TASKS
    meta_opt.apply_gradients(zip(outer.gradient(total, theta), theta))
    return total


if "eager-train-step" in FIXED:
    meta_step = tf.function(meta_step)

# Every task of the whole run: amplitude and phase, support and query points.
amp = RNG.uniform(0.5, 3.0, (META_STEPS, TASKS, 1, 1))
phase = RNG.uniform(0, np.pi, (META_STEPS, TASKS, 1, 1))
points = RNG.uniform(-4, 4, (2, META_STEPS, TASKS, SHOTS, 1))
values = amp * np.sin(points + phase)
support_x, query_x = tf.constant(points, tf.float32)
support_y, query_y = tf.constant(values, tf.float32)

running = tf.zeros([])
for i in range(META_STEPS):
    loss = meta_step(support_x[i], support_y[i], query_x[i], query_y[i])
    running = loss if i == 0 else 0.95 * running + 0.05 * loss
    if i % 55 == 0 or i == META_STEPS - 1:
        tf.print("meta step", i, "smoothed query loss", running)
