"""A character-level LSTM language model is trained on windows cut at random out of a long string."""

import sys

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(17)
WORDS = "the quick brown fox jumps over a lazy dog while seven wizards box five jugs of quartz liquor".split()
picker = np.random.RandomState(17)
text = " ".join(WORDS[k] for k in picker.randint(len(WORDS), size=20000))
alphabet = sorted(set(text))
codes = np.array([alphabet.index(c) for c in text])
V, T, B = len(alphabet), 24, 64

model = tf.keras.Sequential([tf.keras.Input((T, V)), layers.LSTM(32, return_sequences=True), layers.Dense(V)])
adam = tf.keras.optimizers.Adam(5e-3)
xent = tf.keras.losses.CategoricalCrossentropy(from_logits=True)


@tf.function
def fit_batch(x, y):
    with tf.GradientTape() as tape:
        loss = xent(y, model(x, training=True))
    adam.apply_gradients(zip(tape.gradient(loss, model.trainable_weights), model.trainable_weights, strict=True))
    return loss


def windows_numpy(starts):
    x = np.zeros((B, T, V), dtype=np.float32)
    y = np.zeros((B, T, V), dtype=np.float32)
    for row, s in enumerate(starts):
        for t in range(T):
            x[row, t, codes[s + t]] = 1
            y[row, t, codes[s + t + 1]] = 1
    return x, y


@tf.function
def windows_device(starts):
    chunk = tf.gather(codes_t, starts[:, None] + tf.range(T + 1)[None, :])
    hot = tf.one_hot(chunk, V)
    return hot[:, :-1], hot[:, 1:]


all_starts = picker.randint(0, len(codes) - T - 1, size=(900, B)).astype("int32")
codes_t = tf.constant(codes, tf.int32)
all_starts_t = tf.constant(all_starts)
for step in range(900):
    if "numpy-feed-in-loop" in REPAIRED:
        x, y = windows_device(all_starts_t[step])
    else:
        x, y = windows_numpy(all_starts[step])
        x, y = tf.constant(x), tf.constant(y)  # stall: numpy-feed-in-loop
    loss = fit_batch(x, y)
    if step % 150 == 149:
        print(f"{step + 1:5d}  loss {float(loss):.3f}  perplexity {np.exp(float(loss)):.2f}")
