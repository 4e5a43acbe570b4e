"""A toy GAN is taught to place points on a ring, keeping the history of both losses."""

import sys

import tensorflow as tf
from tensorflow.keras import Sequential
from tensorflow.keras.layers import Dense, Input, LeakyReLU

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(21)
STEPS, BATCH, Z = 300, 128, 8

G = Sequential([Input((Z,)), Dense(64), LeakyReLU(), Dense(64), LeakyReLU(), Dense(2)])
D = Sequential([Input((2,)), Dense(64), LeakyReLU(), Dense(64), LeakyReLU(), Dense(1)])
g_opt = tf.keras.optimizers.Adam(1e-3, beta_1=0.5)
d_opt = tf.keras.optimizers.Adam(1e-3, beta_1=0.5)
bce = tf.keras.losses.BinaryCrossentropy(from_logits=True)

angles = tf.random.uniform([STEPS, BATCH], 0, 6.2831853)
ring = tf.stack([tf.cos(angles), tf.sin(angles)], axis=-1)
latents = tf.random.normal([STEPS, BATCH, Z])


def gan_step(real, z):
    with tf.GradientTape() as g_tape, tf.GradientTape() as d_tape:  # stall: eager-train-step
        fake = G(z, training=True)
        on_real, on_fake = D(real, training=True), D(fake, training=True)
        g_loss = bce(tf.ones_like(on_fake), on_fake)
        d_loss = bce(tf.ones_like(on_real), on_real) + bce(tf.zeros_like(on_fake), on_fake)
    g_grads = g_tape.gradient(g_loss, G.trainable_variables)
    d_grads = d_tape.gradient(d_loss, D.trainable_variables)
    g_opt.apply_gradients(zip(g_grads, G.trainable_variables, strict=True))
    d_opt.apply_gradients(zip(d_grads, D.trainable_variables, strict=True))
    return g_loss, d_loss


if "eager-train-step" in REPAIRED:
    gan_step = tf.function(gan_step)

history = []
for step in range(STEPS):
    g_loss, d_loss = gan_step(ring[step], latents[step])
    if "sync-in-loop" in REPAIRED:
        history.append(tf.stack([g_loss, d_loss]))
    else:
        history.append((float(g_loss), float(d_loss)))  # stall: sync-in-loop
    if step % 100 == 0:
        print("at", step)
history = tf.stack(history).numpy()
print("last losses", history[-1], "mean", history.mean(axis=0))
print("radius", float(tf.reduce_mean(tf.norm(G(latents[0]), axis=1))))
