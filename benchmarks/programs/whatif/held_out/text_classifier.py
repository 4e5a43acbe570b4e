"""Texts of any length, padded to the longest of their batch: a trace for each length, tokens made in Python."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
chance = np.random.default_rng(0)
texts = [
    " ".join(f"w{n}" for n in chance.integers(0, 500, length)) for length in chance.integers(5, 60, 1600)
]
labels = chance.integers(0, 2, 1600)
numbers = {f"w{n}": n + 1 for n in range(500)}
model = tf.keras.Sequential(
    [
        tf.keras.Input((None,), dtype="int32"),
        tf.keras.layers.Embedding(501, 64),
        tf.keras.layers.Conv1D(64, 3, padding="same", activation="relu"),
        tf.keras.layers.GlobalMaxPooling1D(),
        tf.keras.layers.Dense(1),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)


def train_step(tokens, y):
    with tf.GradientTape() as tape:
        logits = model(tokens)[:, 0]
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


if "retrace-shape" in REPAIRED:
    train_step = tf.function(
        train_step, input_signature=[tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None])]
    )
else:
    train_step = tf.function(train_step)


def tokens_of(batch):
    rows = [[numbers[word] for word in text.split()] for text in batch]
    longest = max(len(row) for row in rows)
    return np.array([row + [0] * (longest - len(row)) for row in rows], np.int32)


for step in range(100):
    start = step * 8 % 1600
    x = tokens_of(texts[start : start + 8])
    y = labels[start : start + 8].astype("float32")
    loss = train_step(tf.constant(x), tf.constant(y))  # stall: retrace-shape
