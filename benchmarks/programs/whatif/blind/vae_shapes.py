"""A variational autoencoder (Keras subclass, custom train_step) of small drawings that a Python generator hands out."""

import sys

import numpy as np
import tensorflow as tf
from tensorflow import keras

KEEP = set(sys.argv[1:])
keras.utils.set_random_seed(8)
N, SIDE, LATENT, EPOCHS = 6000, 24, 6, 6


def draw(rng):
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    cx, cy, r = rng.uniform(6, 18, N), rng.uniform(6, 18, N), rng.uniform(2, 6, N)
    dist = (xx[None] - cx[:, None, None]) ** 2 + (yy[None] - cy[:, None, None]) ** 2
    return (255 * (dist < r[:, None, None] ** 2)).astype("uint8")


class VAE(keras.Model):
    def __init__(self):
        super().__init__()
        self.enc = keras.Sequential(
            [keras.layers.Flatten(), keras.layers.Dense(400, activation="relu"), keras.layers.Dense(200, activation="relu"), keras.layers.Dense(2 * LATENT)]
        )
        self.dec = keras.Sequential(
            [keras.layers.Dense(200, activation="relu"), keras.layers.Dense(400, activation="relu"), keras.layers.Dense(SIDE * SIDE)]
        )
        self.elbo = keras.metrics.Mean(name="neg_elbo")

    @property
    def metrics(self):
        return [self.elbo]

    def call(self, x):
        mu, logvar = tf.split(self.enc(x), 2, axis=1)
        return self.dec(mu + tf.exp(0.5 * logvar) * tf.random.normal(tf.shape(mu))), mu, logvar

    def train_step(self, x):
        with tf.GradientTape() as tape:
            logits, mu, logvar = self(x)
            flat = tf.reshape(x, [-1, SIDE * SIDE])
            rec = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=flat, logits=logits), axis=1)
            kl = -0.5 * tf.reduce_sum(1 + logvar - mu**2 - tf.exp(logvar), axis=1)
            loss = tf.reduce_mean(rec + kl)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.elbo.update_state(loss)
        return {"neg_elbo": self.elbo.result()}


images = draw(np.random.default_rng(8))


def pictures():
    for picture in images:
        yield picture.astype("float32") / 255.0


if "python-input-pipeline" in KEEP:
    data = tf.data.Dataset.from_tensor_slices(images.astype("float32") / 255.0)
else:
    data = tf.data.Dataset.from_generator(pictures, output_signature=tf.TensorSpec((SIDE, SIDE), tf.float32))  # stall: python-input-pipeline
data = data.shuffle(1000, seed=2).batch(100).prefetch(tf.data.AUTOTUNE)

vae = VAE()
vae.compile(optimizer=keras.optimizers.Adam(1e-3))
vae.fit(data, epochs=EPOCHS, verbose=2)
