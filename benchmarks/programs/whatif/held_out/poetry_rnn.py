"""An LSTM that writes verse: an eager step, and a verse of some characters by predict() every few steps."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
SIGNS = 40
text = np.random.default_rng(0).integers(0, SIGNS, 20000).astype("int32")
model = tf.keras.Sequential(
    [
        tf.keras.Input((20,), dtype="int32"),
        tf.keras.layers.Embedding(SIGNS, 16),
        tf.keras.layers.LSTM(48),
        tf.keras.layers.Dense(SIGNS),
    ]
)
optimizer = tf.keras.optimizers.RMSprop(1e-3)
entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
windows = tf.constant(np.stack([text[i : i + 21] for i in range(0, 19000, 5)]))


def train_step(rows):
    with tf.GradientTape() as tape:  # stall: eager-train-step
        loss = entropy(rows[:, -1], model(rows[:, :-1], training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


if "eager-train-step" in REPAIRED:
    train_step = tf.function(train_step)


@tf.function(input_signature=[tf.TensorSpec([1, 20], tf.int32)])
def following(row):
    return model(row)


for step in range(14):
    loss = train_step(windows[step * 32 : step * 32 + 32])
    verse = list(text[step : step + 20])
    for _ in range(3):
        row = np.array([verse[-20:]], np.int32)
        if "predict-in-loop" in REPAIRED:
            scores = following(row).numpy()
        else:
            scores = model.predict(row, verbose=0)  # stall: predict-in-loop
        verse.append(int(scores[0].argmax()))
