"""A siamese net on pairs made by a py_function, element by element, without a prefetch."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
digits = np.random.default_rng(0).random((2000, 14, 14, 1)).astype("float32")
labels = np.random.default_rng(1).integers(0, 10, 2000)
tower = tf.keras.Sequential(
    [
        tf.keras.Input((14, 14, 1)),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(32),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)


def pair(i):
    i = int(i)
    j = (i * 7 + 13) % 2000
    return digits[i], digits[j], np.float32(labels[i] == labels[j])


def from_python(i):
    a, b, same = tf.py_function(pair, [i], [tf.float32, tf.float32, tf.float32])
    return tf.ensure_shape(a, (14, 14, 1)), tf.ensure_shape(b, (14, 14, 1)), tf.ensure_shape(same, ())


data = tf.data.Dataset.range(2000).repeat()
if "python-input-pipeline" in REPAIRED:
    stored, classes = tf.constant(digits), tf.constant(labels)

    def gathered(i):
        j = (i * 7 + 13) % 2000
        same = tf.cast(tf.gather(classes, i) == tf.gather(classes, j), tf.float32)
        return tf.gather(stored, i), tf.gather(stored, j), same

    data = data.batch(32).map(gathered).prefetch(2)
else:
    data = data.map(from_python).batch(32)  # stall: python-input-pipeline


@tf.function
def train_step(a, b, same):
    with tf.GradientTape() as tape:
        far = tf.norm(tower(a) - tower(b) + 1e-6, axis=1)
        loss = tf.reduce_mean(same * far**2 + (1 - same) * tf.maximum(1.0 - far, 0.0) ** 2)
    gradients = tape.gradient(loss, tower.trainable_variables)
    optimizer.apply_gradients(zip(gradients, tower.trainable_variables))
    return loss


losses = []
for step, (a, b, same) in zip(range(60), data):
    losses.append(train_step(a, b, same).numpy())
