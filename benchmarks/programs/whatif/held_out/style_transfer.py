"""Style transfer: the picture itself is trained, eagerly, and saved as a checkpoint at every step."""

import sys
import tempfile

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
chance = np.random.default_rng(0)
layers = [tf.keras.layers.Conv2D(f, 3, 2, "same", activation="relu") for f in (8, 16, 32)]
picture = tf.Variable(chance.random((1, 64, 64, 3)).astype("float32"))
style, content = (tf.constant(chance.random((1, 64, 64, 3)), tf.float32) for _ in range(2))
optimizer = tf.keras.optimizers.Adam(0.02)


def seen(x):
    found = []
    for layer in layers:
        x = layer(x)
        found.append(x)
    return found


def gram(x):
    return tf.einsum("bijc,bijd->bcd", x, x) / tf.cast(tf.size(x), tf.float32)


style_grams, content_seen = [gram(x) for x in seen(style)], seen(content)[-1]


def train_step():
    with tf.GradientTape() as tape:  # stall: eager-train-step
        found = seen(picture)
        loss = tf.add_n([tf.reduce_mean((gram(x) - g) ** 2) for x, g in zip(found, style_grams)]) * 100
        loss += tf.reduce_mean((found[-1] - content_seen) ** 2)
        loss += tf.reduce_mean(tf.image.total_variation(picture)) / 1e4
    optimizer.apply_gradients([(tape.gradient(loss, picture), picture)])
    picture.assign(tf.clip_by_value(picture, 0.0, 1.0))
    return loss


if "eager-train-step" in REPAIRED:
    train_step = tf.function(train_step)
with tempfile.TemporaryDirectory() as directory:
    checkpoint = tf.train.Checkpoint(picture=picture)
    for step in range(40):
        loss = train_step()
        if "checkpoint-in-loop" not in REPAIRED or step % 50 == 0:
            checkpoint.write(directory + "/picture")  # stall: checkpoint-in-loop
