"""An encoder and a decoder with teacher forcing, unrolled in Python, sentences from a Python generator."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
WORDS, LENGTH, UNITS, BATCH = 200, 8, 48, 32
embed = tf.keras.layers.Embedding(WORDS, UNITS)
encoder = tf.keras.layers.GRU(UNITS, return_state=True)
cell = tf.keras.layers.GRUCell(UNITS)
project = tf.keras.layers.Dense(WORDS)
optimizer = tf.keras.optimizers.Adam(1e-3)


def pairs():
    chance = np.random.default_rng(0)
    while True:
        words = [int(w) for w in chance.integers(1, WORDS, LENGTH)]
        yield np.array(words), np.array(list(reversed(words)))


if "python-input-pipeline" in REPAIRED:
    sentences = tf.random.uniform([4096, LENGTH], 1, WORDS, tf.int64)
    data = tf.data.Dataset.from_tensor_slices(sentences).repeat().batch(BATCH).map(lambda w: (w, w[:, ::-1]))
else:
    spec = tf.TensorSpec((LENGTH,), tf.int64)
    data = tf.data.Dataset.from_generator(pairs, output_signature=(spec, spec)).batch(
        BATCH
    )  # stall: python-input-pipeline
data = data.prefetch(2)


def train_step(source, wanted):
    loss = 0.0
    with tf.GradientTape() as tape:  # stall: eager-train-step
        _, state = encoder(embed(source))
        word = tf.zeros([BATCH], tf.int64)
        for t in range(LENGTH):
            out, state = cell(embed(word), state)
            logits = project(out)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(wanted[:, t], logits)
            loss += tf.reduce_mean(losses)
            word = wanted[:, t]
    variables = embed.trainable_variables + encoder.trainable_variables + cell.trainable_variables
    variables += project.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


if "eager-train-step" in REPAIRED:
    train_step = tf.function(train_step)
for step, (source, wanted) in zip(range(14), data):
    loss = train_step(source, wanted)
