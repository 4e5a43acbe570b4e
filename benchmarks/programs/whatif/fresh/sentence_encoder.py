"""A one-block transformer classifies sentences that come in batches padded only to their own longest sentence."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(6)
VOCAB, WIDTH = 300, 32


class Encoder(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = tf.keras.layers.Embedding(VOCAB, WIDTH)
        self.attend = tf.keras.layers.MultiHeadAttention(2, WIDTH // 2)
        self.norm1 = tf.keras.layers.LayerNormalization()
        self.norm2 = tf.keras.layers.LayerNormalization()
        self.up = tf.keras.layers.Dense(64, activation="relu")
        self.down = tf.keras.layers.Dense(WIDTH)
        self.head = tf.keras.layers.Dense(2)

    def call(self, ids):
        real = tf.not_equal(ids, 0)
        x = self.embed(ids)
        x = self.norm1(x + self.attend(x, x, attention_mask=real[:, None, :]))
        x = self.norm2(x + self.down(self.up(x)))
        weight = tf.cast(real, x.dtype)[..., None]
        return self.head(tf.reduce_sum(x * weight, axis=1) / tf.reduce_sum(weight, axis=1))


def sentences(rng, n=16):
    longest = int(rng.integers(8, 40))
    ids = np.zeros((n, longest), "int32")
    for row in ids:
        length = rng.integers(4, longest + 1)
        row[:length] = rng.integers(1, VOCAB, size=length)
    return tf.constant(ids), tf.constant((ids > 150).sum(1) > (ids > 0).sum(1) / 2, tf.int32)


model, optimizer = Encoder(), tf.keras.optimizers.Adam(1e-3)
rng = np.random.default_rng(6)
model(sentences(rng)[0])


def step_fn(ids, labels):
    with tf.GradientTape() as tape:
        logits = model(ids)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


if "retrace-shape" in REPAIRED:
    spec = [tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)]
    train_step = tf.function(step_fn, input_signature=spec)
else:
    train_step = tf.function(step_fn, reduce_retracing=False)
for step in range(80):
    ids, labels = sentences(rng)
    loss = train_step(ids, labels)  # stall: retrace-shape
    if step % 20 == 0:
        print(step, "length", ids.shape[1], "loss", float(loss))
