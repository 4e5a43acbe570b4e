"""An untrained GRU continues a prompt letter by letter, always choosing the likeliest next letter."""

import string
import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(12)
LETTERS = string.ascii_lowercase + " .,"
WINDOW = 32


def build():
    ids = tf.keras.Input((WINDOW,), dtype="int32")
    x = tf.keras.layers.Embedding(len(LETTERS), 24, embeddings_initializer="glorot_normal")(ids)
    x = tf.keras.layers.GRU(96, return_sequences=True)(x)
    x = tf.keras.layers.GRU(96)(x)
    return tf.keras.Model(ids, tf.keras.layers.Dense(len(LETTERS))(x))


model = build()


@tf.function(input_signature=[tf.TensorSpec([1, WINDOW], tf.int32)])
def next_logits(ids):
    return model(ids, training=False)


def next_letter(ids):
    window = np.array([ids[-WINDOW:]], dtype="int32")
    if "predict-in-loop" in REPAIRED:
        logits = next_logits(tf.constant(window)).numpy()
    else:
        logits = model.predict(window, verbose=0)  # stall: predict-in-loop
    scores = logits[0]
    recent = ids[-8:]
    scores[recent] -= 0.2 * np.abs(scores).max()  # do not write the same letters over and over
    return int(scores.argmax())


written = [LETTERS.index(c) for c in "it was a dark and stormy night, and the rain fell."[:WINDOW]]
for step in range(180):
    written.append(next_letter(written))
    if step % 60 == 59:
        print("".join(LETTERS[i] for i in written[-60:]))
