"""Sixty-four small images are drawn out of noise by the reverse process of a diffusion model."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(19)
T = 150
betas = np.linspace(1e-4, 0.02, T, dtype=np.float32)
alphas = 1.0 - betas
abar = np.cumprod(alphas)
betas, alphas, abar = tf.constant(betas), tf.constant(alphas), tf.constant(abar)


def unet():
    image = tf.keras.Input((12, 12, 1))
    time = tf.keras.Input((16,))
    conv = lambda n, **kw: tf.keras.layers.Conv2D(n, 3, padding="same", activation="swish", **kw)  # noqa: E731
    a = conv(8)(image)
    b = conv(16, strides=2)(a)
    b = b + tf.keras.layers.Dense(16)(time)[:, None, None, :]
    b = conv(16)(b)
    up = tf.keras.layers.UpSampling2D()(b)
    joined = tf.keras.layers.Concatenate()([up, a])
    return tf.keras.Model([image, time], tf.keras.layers.Conv2D(1, 3, padding="same")(conv(8)(joined)))


net = unet()
frequencies = tf.exp(-tf.range(8, dtype=tf.float32))


@tf.function
def denoise(x, t):
    phase = tf.cast(t, tf.float32) * frequencies
    code = tf.concat([tf.sin(phase), tf.cos(phase)], axis=0)
    eps = net([x, tf.tile(code[None], [tf.shape(x)[0], 1])], training=False)
    mean = (x - betas[t] / tf.sqrt(1.0 - abar[t]) * eps) / tf.sqrt(alphas[t])
    noise = tf.random.stateless_normal(tf.shape(x), seed=tf.stack([t, 5]))
    return mean + tf.where(t > 0, tf.sqrt(betas[t]), 0.0) * noise


x = tf.random.stateless_normal([64, 12, 12, 1], seed=[0, 0])
for step in reversed(range(T)):
    if "retrace-python-arg" in REPAIRED:
        x = denoise(x, tf.constant(step))
    else:
        x = denoise(x, step)  # stall: retrace-python-arg
    if step % 50 == 0:
        print("t =", step, "std", float(tf.math.reduce_std(x)))
