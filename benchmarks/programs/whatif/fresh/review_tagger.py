"""A bag-of-embeddings model tags reviews as good or bad, saving itself often lest the machine be taken away."""

import sys
import tempfile

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(90)
rng = np.random.default_rng(90)
words = [
    f"{a}{b}" for a in ("gra", "blo", "shi", "ter", "nu", "po", "zel") for b in ("ck", "sty", "m", "rn", "lio", "p")
]
vocabulary = {word: i + 1 for i, word in enumerate(words)}
picked = rng.integers(0, len(words), size=(4000, 30))
reviews = [" ".join(words[i] + ("!" if i % 5 == 0 else "") for i in row).title() for row in picked]
labels = (picked.mean(axis=1) > (len(words) - 1) / 2).astype("float32")


def encode_python(review):
    tokens = review.numpy().decode().lower().replace("!", "").split()
    return np.array([vocabulary.get(token, 0) for token in tokens], "int64")


def slow(review, label):
    ids = tf.py_function(encode_python, [review], tf.int64)  # stall: python-input-pipeline
    return tf.ensure_shape(ids, [30]), label


table = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(list(vocabulary), tf.constant(list(vocabulary.values()), tf.int64)), 0
)


def quick(reviews, labels):
    tokens = tf.strings.split(tf.strings.regex_replace(tf.strings.lower(reviews), "!", ""))
    return table.lookup(tokens.to_tensor(shape=[None, 30])), labels


ds = tf.data.Dataset.from_tensor_slices((reviews, labels)).repeat()
if "python-input-pipeline" in REPAIRED:
    ds = ds.batch(32).map(quick, num_parallel_calls=tf.data.AUTOTUNE)
else:
    ds = ds.map(slow, num_parallel_calls=tf.data.AUTOTUNE).batch(32)
ds = ds.prefetch(tf.data.AUTOTUNE)

model = tf.keras.Sequential(
    [
        tf.keras.Input((30,), dtype="int64"),
        tf.keras.layers.Embedding(len(words) + 1, 64),
        tf.keras.layers.GlobalAveragePooling1D(),
        tf.keras.layers.Dense(256, activation="relu"),
        tf.keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss=tf.keras.losses.BinaryCrossentropy(from_logits=True))
checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
SAVE_EVERY = 200 if "checkpoint-in-loop" in REPAIRED else 4

with tempfile.TemporaryDirectory() as folder:
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
    for step, (ids, y) in enumerate(ds.take(400)):
        loss = model.train_on_batch(ids, y)
        if step % SAVE_EVERY == SAVE_EVERY - 1:
            manager.save()  # stall: checkpoint-in-loop
        if step % 100 == 99:
            print("step", step + 1, "mean loss", float(loss))
