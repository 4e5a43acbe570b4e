"""A click model with hashed categories is trained from serialized examples of an advertising log."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(40)
rng = np.random.default_rng(40)


def serialize(dense, cats, click):
    feature = {
        "dense": tf.train.Feature(float_list=tf.train.FloatList(value=dense)),
        "cats": tf.train.Feature(int64_list=tf.train.Int64List(value=cats)),
        "click": tf.train.Feature(float_list=tf.train.FloatList(value=[click])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


log = [serialize(rng.lognormal(size=13), rng.integers(0, 10**9, 8), float(rng.integers(0, 2))) for _ in range(8192)]
SPEC = {
    "dense": tf.io.FixedLenFeature([13], tf.float32),
    "cats": tf.io.FixedLenFeature([8], tf.int64),
    "click": tf.io.FixedLenFeature([], tf.float32),
}


def clean(row):
    dense = tf.math.log1p(tf.clip_by_value(row["dense"], 0.0, 50.0))
    return dense, tf.math.floormod(row["cats"] * 2654435761, 1000), row["click"]


def parse_one(record):
    return clean(tf.io.parse_single_example(record, SPEC))


def parse_many(records):
    return clean(tf.io.parse_example(records, SPEC))


ds = tf.data.Dataset.from_tensor_slices(log).shuffle(8192, seed=1).repeat()
if "map-before-batch" in REPAIRED:
    ds = ds.batch(128).map(parse_many, num_parallel_calls=tf.data.AUTOTUNE)
else:
    ds = ds.map(parse_one, num_parallel_calls=tf.data.AUTOTUNE).batch(128)  # stall: map-before-batch
ds = ds.prefetch(tf.data.AUTOTUNE)

dense, cats = tf.keras.Input((13,)), tf.keras.Input((8,), dtype="int64")
embedded = tf.keras.layers.Flatten()(tf.keras.layers.Embedding(1000, 8)(cats))
x = tf.keras.layers.Concatenate()([dense, embedded])
x = tf.keras.layers.Dense(32, activation="relu")(x)
model = tf.keras.Model([dense, cats], tf.keras.layers.Dense(1)(x))
bce = tf.keras.losses.BinaryCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.SGD(0.05)


@tf.function
def train_step(dense, cats, click):
    with tf.GradientTape() as tape:
        loss = bce(click[:, None], model([dense, cats], training=True))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


for step, batch in enumerate(ds.take(1500)):
    loss = train_step(*batch)
    if step % 300 == 0:
        print(step, "loss", loss.numpy())
