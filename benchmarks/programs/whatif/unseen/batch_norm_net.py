"""A convolutional net with batch normalisation and dropout, trained op by op with Adam."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
images = tf.constant(rng.normal(size=(16, 20, 20, 3)).astype("float32"))
labels = tf.constant(rng.integers(0, 4, 16))
layers = tf.keras.layers
model = tf.keras.Sequential(
    [
        tf.keras.Input((20, 20, 3)),
        layers.Conv2D(12, 3),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.MaxPooling2D(),
        layers.Dropout(0.25),
        layers.Flatten(),
        layers.Dense(4),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def train_step(x, y):
    with tf.GradientTape() as tape:  # stall: eager-train-step
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


if "eager-train-step" in REPAIRED:
    train_step = tf.function(train_step)
for step in range(120):
    train_step(images, labels)
