"""A denoising autoencoder: pictures mapped one by one before they are batched, an eager step."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
pictures = np.random.default_rng(0).integers(0, 255, (2000, 20, 20), dtype=np.uint8)
model = tf.keras.Sequential(
    [
        tf.keras.Input((20, 20, 1)),
        tf.keras.layers.Conv2D(16, 3, 2, "same", activation="relu"),
        tf.keras.layers.Conv2DTranspose(16, 3, 2, "same", activation="relu"),
        tf.keras.layers.Conv2D(1, 3, padding="same"),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)


def noisy(x):
    x = tf.cast(x, tf.float32)[..., None] / 255.0
    return tf.clip_by_value(x + tf.random.normal(tf.shape(x), 0, 0.1), 0, 1), x


data = tf.data.Dataset.from_tensor_slices(pictures).repeat()
if "map-before-batch" in REPAIRED:
    data = data.batch(32).map(noisy)
else:
    data = data.map(noisy).batch(32)  # stall: map-before-batch


def train_step(x, y):
    with tf.GradientTape() as tape:  # stall: eager-train-step
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


if "eager-train-step" in REPAIRED:
    train_step = tf.function(train_step)
for step, (x, y) in zip(range(30), data):
    loss = train_step(x, y)
