"""A physics-informed net for Burgers' equation: second derivatives by nested tapes, all of it eager."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
chance = np.random.default_rng(0)
net = tf.keras.Sequential(
    [tf.keras.Input((2,))]
    + [tf.keras.layers.Dense(20, activation="tanh") for _ in range(5)]
    + [tf.keras.layers.Dense(1)]
)
optimizer = tf.keras.optimizers.Adam(1e-3)
where = tf.constant(chance.uniform(-1, 1, (1000, 1)), tf.float32)
when = tf.constant(chance.uniform(0, 1, (1000, 1)), tf.float32)


def residual(x, t):
    with tf.GradientTape(persistent=True) as second:
        second.watch(x)
        with tf.GradientTape(persistent=True) as first:
            first.watch([x, t])
            u = net(tf.concat([x, t], axis=1))
        u_x = first.gradient(u, x)
    return first.gradient(u, t) + u * u_x - 0.01 / np.pi * second.gradient(u_x, x)


def train_step(x, t):
    with tf.GradientTape() as tape:  # stall: eager-train-step
        at_start = net(tf.concat([x, tf.zeros_like(t)], axis=1))
        loss = tf.reduce_mean(residual(x, t) ** 2) + tf.reduce_mean((at_start + tf.sin(np.pi * x)) ** 2)
    gradients = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    return loss


if "eager-train-step" in REPAIRED:
    train_step = tf.function(train_step)
best, history = np.inf, []
for step in range(14):
    loss = float(train_step(where, when))
    if step % 10 == 0:
        history.append(np.sort(np.abs(net(tf.concat([where, when], 1)).numpy()[:, 0]))[-10:])
    best = min(best, loss)
