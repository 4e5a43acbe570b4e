"""A small convolutional variational autoencoder learns pictures of soft round blobs."""

import sys

import numpy as np
import tensorflow as tf
from tensorflow import keras

REPAIRED = set(sys.argv[1:])
keras.utils.set_random_seed(5)


def make_blobs(n):
    rng = np.random.RandomState(1)
    centre = rng.uniform(4, 12, size=(n, 2, 1, 1))
    width = rng.uniform(1, 3, size=(n, 1, 1))
    yy, xx = np.mgrid[0:16, 0:16]
    d2 = (yy - centre[:, 0]) ** 2 + (xx - centre[:, 1]) ** 2
    return np.exp(-d2 / (2 * width**2)).astype("float32")[..., None]


class VAE(keras.Model):
    def __init__(self, latent=4):
        super().__init__()
        self.encoder = keras.Sequential(
            [
                keras.layers.Conv2D(8, 3, strides=2, padding="same", activation="relu"),
                keras.layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
                keras.layers.Flatten(),
                keras.layers.Dense(2 * latent),
            ]
        )
        self.decoder = keras.Sequential(
            [
                keras.layers.Dense(4 * 4 * 16, activation="relu"),
                keras.layers.Reshape((4, 4, 16)),
                keras.layers.Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu"),
                keras.layers.Conv2DTranspose(1, 3, strides=2, padding="same"),
            ]
        )

    def call(self, images, seed):
        mean, logvar = tf.split(self.encoder(images), 2, axis=1)
        noise = tf.random.stateless_normal(tf.shape(mean), seed=seed)
        return self.decoder(mean + tf.exp(0.5 * logvar) * noise), mean, logvar


def train_on(images, seed):
    with tf.GradientTape() as tape:  # stall: eager-train-step
        logits, mean, logvar = vae(images, seed)
        bce = tf.nn.sigmoid_cross_entropy_with_logits(labels=images, logits=logits)
        kl = -0.5 * tf.reduce_sum(1 + logvar - mean**2 - tf.exp(logvar), axis=1)
        loss = tf.reduce_mean(tf.reduce_sum(bce, axis=[1, 2, 3]) + kl)
    grads = tape.gradient(loss, vae.trainable_weights)
    optimizer.apply_gradients(zip(grads, vae.trainable_weights, strict=True))
    return loss


vae = VAE()
optimizer = keras.optimizers.Adam(2e-3)
if "eager-train-step" in REPAIRED:
    train_on = tf.function(train_on)
dataset = tf.data.Dataset.from_tensor_slices(make_blobs(2048)).batch(32).repeat().prefetch(2)
for step, images in enumerate(dataset.take(300)):
    loss = train_on(images, tf.stack([tf.constant(step), 7]))
    if step % 100 == 0:
        tf.print("step", step, "negative elbo", loss)
