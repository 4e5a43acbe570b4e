"""A physics-informed network fits the one-dimensional heat equation on random collocation points."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(11)
ALPHA = 0.1

net = tf.keras.Sequential(
    [tf.keras.Input((2,)), *[tf.keras.layers.Dense(32, activation="tanh") for _ in range(4)], tf.keras.layers.Dense(1)]
)
opt = tf.keras.optimizers.Adam(1e-3)

rng = np.random.default_rng(0)
collocation = tf.constant(rng.uniform(size=(256, 2)), tf.float32)
x_init = rng.uniform(size=(64, 1)).astype("float32")
initial = tf.constant(np.hstack([x_init, np.zeros_like(x_init)]))
u_initial = tf.sin(np.pi * initial[:, :1])
t_edge = rng.uniform(size=(64, 1)).astype("float32")
edges = tf.constant(np.vstack([np.hstack([np.zeros_like(t_edge), t_edge]), np.hstack([np.ones_like(t_edge), t_edge])]))


def residual(points):
    x, t = points[:, :1], points[:, 1:]
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape(persistent=True) as first:
            first.watch([x, t])
            u = net(tf.concat([x, t], axis=1))
        u_x = first.gradient(u, x)
        u_t = first.gradient(u, t)
    return u_t - ALPHA * second.gradient(u_x, x)


def train_step():
    with tf.GradientTape() as tape:  # stall: eager-train-step
        physics = tf.reduce_mean(residual(collocation) ** 2)
        start = tf.reduce_mean((net(initial) - u_initial) ** 2)
        walls = tf.reduce_mean(net(edges) ** 2)
        loss = physics + 10.0 * start + walls
    grads = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables, strict=True))
    return loss


if "eager-train-step" in REPAIRED:
    train_step = tf.function(train_step)

for step in range(240):
    loss = train_step()
    if step % 60 == 0:
        print(f"step {step}: loss {float(loss):.5f}")
middle = net(tf.constant([[0.5, 0.5]]))
print("u(0.5, 0.5) =", float(middle[0, 0]))
