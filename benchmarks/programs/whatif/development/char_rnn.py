"""A character model on lines of several lengths: a trace for each; now and then predict() writes a text."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
chance = np.random.default_rng(0)
CHARACTERS = 60
model = tf.keras.Sequential(
    [
        tf.keras.Input((None,), dtype="int32"),
        tf.keras.layers.Embedding(CHARACTERS, 32),
        tf.keras.layers.GRU(64, return_sequences=True),
        tf.keras.layers.Dense(CHARACTERS),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)
lengths = chance.choice([9, 12, 15, 18, 21, 24], 90)
lines = [tf.constant(chance.integers(1, CHARACTERS, (16, n)), tf.int32) for n in lengths]


def train_step(text):
    with tf.GradientTape() as tape:
        logits = model(text[:, :-1])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(text[:, 1:], logits)
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


if "retrace-shape" in REPAIRED:
    train_step = tf.function(train_step, input_signature=[tf.TensorSpec([16, None], tf.int32)])
else:
    train_step = tf.function(train_step)


@tf.function(input_signature=[tf.TensorSpec([1, None], tf.int32)])
def following(text):
    return model(text)[:, -1]


for step in range(90):
    loss = train_step(lines[step])  # stall: retrace-shape
    if step % 4 == 0:
        text = [1, 2, 3]
        if "predict-in-loop" in REPAIRED:
            scores = following(np.array([text], np.int32)).numpy()
        else:
            scores = model.predict(np.array([text], np.int32), verbose=0)[:, -1]  # stall: predict-in-loop
        text.append(int(scores.argmax()))
