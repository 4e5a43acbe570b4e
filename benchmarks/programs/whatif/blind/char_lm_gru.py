"""A character language model (GRU) on lines of a made-up grammar; the lines are encoded by a Python function."""

import random
import sys

import numpy as np
import tensorflow as tf

fixed = set(sys.argv[1:])
tf.keras.utils.set_random_seed(61)
random.seed(61)

SUBJECTS = "the cat|a small dog|my neighbour|the old sailor|every student|no machine".split("|")
VERBS = "sees|builds|forgets|paints|carries|measures".split("|")
OBJECTS = "the bridge|a lamp|seven books|the quiet harbour|an equation|the last train".split("|")
lines = [
    f"{random.choice(SUBJECTS)} {random.choice(VERBS)} {random.choice(OBJECTS)} and {random.choice(VERBS)} {random.choice(OBJECTS)}."
    for _ in range(9000)
]
ALPHABET = sorted(set("".join(lines)))
INDEX = {c: i + 1 for i, c in enumerate(ALPHABET)}
LENGTH, BATCH, EPOCHS, UNITS = 40, 60, 2, 96


def encode_python(line):
    text = line.numpy().decode("utf-8")
    ids = []
    for ch in text[: LENGTH + 1]:
        ids.append(INDEX.get(ch, 0))
    return np.array(ids + [0] * (LENGTH + 1 - len(ids)), dtype=np.int32)


def encode_wrapped(line):
    ids = tf.py_function(encode_python, [line], tf.int32)  # stall: python-input-pipeline
    ids.set_shape([LENGTH + 1])
    return ids[:-1], ids[1:]


lookup = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(ALPHABET, list(range(1, len(ALPHABET) + 1)), value_dtype=tf.int32), 0)


def encode_native(line):
    chars = tf.strings.bytes_split(tf.strings.substr(line, 0, LENGTH + 1))
    ids = lookup.lookup(chars)
    ids = tf.pad(ids, [[0, LENGTH + 1 - tf.shape(ids)[0]]])
    ids.set_shape([LENGTH + 1])
    return ids[:-1], ids[1:]


def make_dataset():
    ds = tf.data.Dataset.from_tensor_slices(lines)
    ds = ds.map(encode_native if "python-input-pipeline" in fixed else encode_wrapped, num_parallel_calls=tf.data.AUTOTUNE)
    if "missing-prefetch" in fixed:
        return ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    return ds.batch(BATCH, drop_remainder=True)  # stall: missing-prefetch


model = tf.keras.Sequential(
    [
        tf.keras.Input((LENGTH,), dtype="int32"),
        tf.keras.layers.Embedding(len(ALPHABET) + 1, 32),
        tf.keras.layers.GRU(UNITS, return_sequences=True),
        tf.keras.layers.Dense(len(ALPHABET) + 1),
    ]
)
optimizer = tf.keras.optimizers.Adam(4e-3)
cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = cross_entropy(y, model(x, training=True))
    grads, _ = tf.clip_by_global_norm(tape.gradient(loss, model.trainable_variables), 1.0)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


dataset = make_dataset()
for epoch in range(EPOCHS):
    for n, (x, y) in enumerate(dataset):
        loss = train_step(x, y)
        if n % 50 == 0:
            print("epoch", epoch, "batch", n, "loss", round(float(loss), 4))
print("final", round(float(loss), 4))
