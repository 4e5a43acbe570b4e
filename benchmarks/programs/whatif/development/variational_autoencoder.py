"""A VAE as a subclassed model with its own loop: eager step, the beta of the loss a Python number that changes."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
encoder = tf.keras.Sequential(
    [tf.keras.Input((196,)), tf.keras.layers.Dense(128, activation="relu"), tf.keras.layers.Dense(16)]
)
decoder = tf.keras.Sequential(
    [tf.keras.Input((8,)), tf.keras.layers.Dense(128, activation="relu"), tf.keras.layers.Dense(196)]
)
optimizer = tf.keras.optimizers.Adam(1e-3)
variables = encoder.trainable_variables + decoder.trainable_variables
images = np.random.default_rng(0).random((4096, 196)).astype("float32")
resident = tf.constant(images)


@tf.function
def train_step(x, beta):
    with tf.GradientTape() as tape:
        mean, spread = tf.split(encoder(x), 2, axis=1)
        z = mean + tf.exp(0.5 * spread) * tf.random.normal(tf.shape(mean))
        logits = decoder(z)
        rebuilt = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(x, logits), axis=1)
        apart = -0.5 * tf.reduce_sum(1 + spread - mean**2 - tf.exp(spread), axis=1)
        loss = tf.reduce_mean(rebuilt + beta * apart)
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


for step in range(120):
    beta = round(min(1.0, step // 10 / 20), 2)
    start = step % 16 * 256
    if "retrace-python-arg" in REPAIRED:
        beta = tf.constant(beta, tf.float32)
    loss = train_step(resident[start : start + 256], beta)  # stall: retrace-python-arg
