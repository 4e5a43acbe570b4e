"""A physics-informed network for the 1-D heat equation u_t = a u_xx, trained with nested gradient tapes."""

import sys

import tensorflow as tf

repaired = sys.argv[1:]
tf.keras.utils.set_random_seed(17)

ALPHA, ITERATIONS = 0.1, 180
N_INTERIOR, N_EDGE = 4000, 400


class HeatNet(tf.keras.Model):
    def __init__(self, width=48, depth=4):
        super().__init__()
        self.hidden = [tf.keras.layers.Dense(width, activation="tanh") for _ in range(depth)]
        self.out = tf.keras.layers.Dense(1)

    def call(self, xt):
        h = xt
        for layer in self.hidden:
            h = layer(h)
        return self.out(h)


def sample_points():
    x = tf.random.uniform([N_INTERIOR, 1])
    t = tf.random.uniform([N_INTERIOR, 1])
    x0 = tf.random.uniform([N_EDGE, 1])
    tb = tf.random.uniform([N_EDGE, 1])
    return x, t, x0, tb


net = HeatNet()
net(tf.zeros([1, 2]))
optimizer = tf.keras.optimizers.Adam(2e-3)
optimizer.build(net.trainable_variables)


def residual(x, t):
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape(persistent=True) as first:
            first.watch([x, t])
            u = net(tf.concat([x, t], axis=1))
        u_x = first.gradient(u, x)
        u_t = first.gradient(u, t)
    u_xx = second.gradient(u_x, x)
    return u_t - ALPHA * u_xx


def train(x, t, x0, tb):
    with tf.GradientTape() as tape:  # stall: eager-train-step
        physics = tf.reduce_mean(residual(x, t) ** 2)
        start = net(tf.concat([x0, tf.zeros_like(x0)], axis=1))
        initial = tf.reduce_mean((start - tf.sin(3.14159265 * x0)) ** 2)
        left = net(tf.concat([tf.zeros_like(tb), tb], axis=1))
        right = net(tf.concat([tf.ones_like(tb), tb], axis=1))
        walls = tf.reduce_mean(left**2) + tf.reduce_mean(right**2)
        loss = physics + 10.0 * initial + 10.0 * walls
    grads = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(grads, net.trainable_variables))
    return loss, physics, initial, walls


step_fn = tf.function(train) if "eager-train-step" in repaired else train
points = sample_points()
log = []
for it in range(ITERATIONS):
    parts = step_fn(*points)
    if "sync-in-loop" in repaired:
        log.append(tf.stack(parts))
    else:
        log.append([p.numpy() for p in parts])  # stall: sync-in-loop
log = tf.convert_to_tensor(log).numpy() if "sync-in-loop" not in repaired else tf.stack(log).numpy()

for it in range(0, ITERATIONS, 45):
    print(f"iter {it:4d} total {log[it][0]:.4f} physics {log[it][1]:.4f} initial {log[it][2]:.4f} walls {log[it][3]:.4f}")
print("final", log[-1][0])
