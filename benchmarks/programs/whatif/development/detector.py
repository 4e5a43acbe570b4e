"""A one-stage detector: anchors matched in NumPy for every batch, the step eager."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
chance = np.random.default_rng(0)
GRID, ANCHORS = 8, 3
inputs = tf.keras.Input((64, 64, 3))
x = inputs
for filters in (16, 32, 64):
    x = tf.keras.layers.Conv2D(filters, 3, 2, "same")(x)
    x = tf.keras.layers.BatchNormalization()(x)
    x = tf.keras.layers.LeakyReLU()(x)
model = tf.keras.Model(inputs, tf.keras.layers.Conv2D(ANCHORS * 5, 1)(x))
optimizer = tf.keras.optimizers.Adam(1e-3)


def matched(boxes):
    """Targets of a grid of anchors, box by box."""
    target = np.zeros((len(boxes), GRID, GRID, ANCHORS, 5), np.float32)
    for n, rows in enumerate(boxes):
        for cx, cy, w, h in rows:
            i, j = int(cy * GRID), int(cx * GRID)
            sizes = np.array([0.1, 0.3, 0.6])
            overlap = np.minimum(sizes, w) * np.minimum(sizes, h) / np.maximum(sizes**2, w * h)
            target[n, i, j, overlap.argmax()] = [cx * GRID - j, cy * GRID - i, np.log(w), np.log(h), 1.0]
    return target


def train_step(pictures, target):
    with tf.GradientTape() as tape:  # stall: eager-train-step
        raw = tf.reshape(model(pictures, training=True), [-1, GRID, GRID, ANCHORS, 5])
        there = target[..., 4:]
        place = tf.square(tf.sigmoid(raw[..., :2]) - target[..., :2])
        size = tf.square(raw[..., 2:4] - target[..., 2:4])
        sure = tf.nn.sigmoid_cross_entropy_with_logits(there, raw[..., 4:])
        loss = tf.reduce_sum(there * (place + size)) + tf.reduce_sum(sure)
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients = [tf.clip_by_norm(g, 10.0) for g in gradients]
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


if "eager-train-step" in REPAIRED:
    train_step = tf.function(train_step)

pictures = chance.random((64, 64, 64, 3)).astype("float32")
boxes = chance.uniform(0.1, 0.9, (64, 4, 4))
ready = tf.constant(pictures)
for step in range(16):
    chosen = np.arange(step * 8, step * 8 + 8) % 64
    x = ready[step * 8 % 64 : step * 8 % 64 + 8]
    loss = train_step(x, tf.constant(matched(boxes[chosen])))
