"""A Wasserstein GAN with a gradient penalty: three eager steps of the critic for one of the generator."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
BATCH = 32
points = np.random.default_rng(0).normal(size=(4096, 8))


def network(inputs, outputs):
    return tf.keras.Sequential(
        [
            tf.keras.Input((inputs,)),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(outputs),
        ]
    )


generator, critic = network(4, 8), network(8, 1)
of_generator, of_critic = tf.keras.optimizers.Adam(1e-4), tf.keras.optimizers.Adam(1e-4)


def critic_step(real):
    fake = generator(tf.random.normal([BATCH, 4]))
    with tf.GradientTape() as tape:  # stall: eager-train-step
        mix = tf.random.uniform([BATCH, 1])
        between = real * mix + fake * (1 - mix)
        with tf.GradientTape() as inner:
            inner.watch(between)
            judged = critic(between)
        slope = tf.norm(inner.gradient(judged, between), axis=1)
        loss = (
            tf.reduce_mean(critic(fake))
            - tf.reduce_mean(critic(real))
            + 10 * tf.reduce_mean((slope - 1) ** 2)
        )
    gradients = tape.gradient(loss, critic.trainable_variables)
    of_critic.apply_gradients(zip(gradients, critic.trainable_variables))
    return loss


def generator_step():
    with tf.GradientTape() as tape:  # stall: eager-train-step
        loss = -tf.reduce_mean(critic(generator(tf.random.normal([BATCH, 4]))))
    gradients = tape.gradient(loss, generator.trainable_variables)
    of_generator.apply_gradients(zip(gradients, generator.trainable_variables))
    return loss


if "eager-train-step" in REPAIRED:
    critic_step, generator_step = tf.function(critic_step), tf.function(generator_step)
resident = tf.constant(points, tf.float32)
for step in range(12):
    for turn in range(3):
        start = (step * 3 + turn) * BATCH % 4096
        if "numpy-feed-in-loop" in REPAIRED:
            real = resident[start : start + BATCH]
        else:
            real = tf.constant(points[start : start + BATCH], tf.float32)  # stall: numpy-feed-in-loop
        critic_step(real)
    generator_step()
