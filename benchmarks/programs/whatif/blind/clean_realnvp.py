"""A well-made normalising flow (RealNVP) in raw TensorFlow: two moons, compiled steps over a prefetched dataset."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(25)
COUPLINGS, WIDTH, BATCH = 6, 128, 500


def moons(n, rng):
    t = rng.uniform(0, np.pi, n)
    side = rng.integers(0, 2, n)
    x = np.where(side == 0, np.cos(t), 1 - np.cos(t))
    y = np.where(side == 0, np.sin(t), 0.5 - np.sin(t))
    return (np.stack([x, y], 1) + 0.06 * rng.standard_normal((n, 2))).astype("float32")


class Coupling(tf.Module):
    def __init__(self, flip):
        super().__init__()
        self.mask = tf.constant([[0.0, 1.0]] if flip else [[1.0, 0.0]])
        self.w1 = tf.Variable(tf.random.normal([2, WIDTH]) * 0.5)
        self.b1 = tf.Variable(tf.zeros([WIDTH]))
        self.w2 = tf.Variable(tf.random.normal([WIDTH, WIDTH]) * (1 / WIDTH) ** 0.5)
        self.b2 = tf.Variable(tf.zeros([WIDTH]))
        self.w3 = tf.Variable(tf.random.normal([WIDTH, 4]) * 0.01)

    def __call__(self, x):
        h = tf.nn.relu(tf.matmul(x * self.mask, self.w1) + self.b1)
        h = tf.nn.relu(tf.matmul(h, self.w2) + self.b2)
        scale, shift = tf.split(tf.matmul(h, self.w3), 2, axis=1)
        scale = tf.tanh(scale) * (1 - self.mask)
        return x * tf.exp(scale) + shift * (1 - self.mask), tf.reduce_sum(scale, axis=1)


flow = [Coupling(i % 2 == 0) for i in range(COUPLINGS)]
weights = [v for layer in flow for v in layer.trainable_variables]
first = [tf.Variable(tf.zeros_like(w)) for w in weights]
second = [tf.Variable(tf.zeros_like(w)) for w in weights]
tick = tf.Variable(0.0)


@tf.function
def fit_step(x):
    with tf.GradientTape() as tape:
        z, log_det = x, tf.zeros([tf.shape(x)[0]])
        for layer in flow:
            z, ld = layer(z)
            log_det += ld
        nll = tf.reduce_mean(0.5 * tf.reduce_sum(z**2, axis=1) + 1.837877 - log_det)
    tick.assign_add(1.0)
    rate = 1e-3 * tf.sqrt(1 - 0.999**tick) / (1 - 0.9**tick)
    for w, m, v, g in zip(weights, first, second, tape.gradient(nll, weights)):
        m.assign(0.9 * m + 0.1 * g)
        v.assign(0.999 * v + 0.001 * g * g)
        w.assign_sub(rate * m / (tf.sqrt(v) + 1e-8))
    return nll


points = tf.data.Dataset.from_tensor_slices(moons(20000, np.random.default_rng(25)))
points = points.cache().shuffle(20000, seed=4).batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
for epoch in range(12):
    for x in points:
        nll = fit_step(x)
    tf.print("epoch", epoch, "negative log-likelihood", nll)
