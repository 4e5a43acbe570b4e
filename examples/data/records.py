"""TFRecord files: the reader infers the spec and parses records a batch at a time."""

import tempfile
from pathlib import Path

import tensorflow as tf

import stoker

folder = Path(tempfile.mkdtemp())
for shard in range(3):
    with tf.io.TFRecordWriter(str(folder / f"{shard}.tfrecord")) as writer:
        for number in range(shard * 100, shard * 100 + 100):
            feature = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[number, 1.0])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number % 2])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())

dataset = stoker.data.tfrecord(
    folder, label="label", batch_size=32, shuffle=True, seed=1, cache=folder / "cache"
)
print(dataset.spec)
print(dataset.rows, "records in", int(dataset.cardinality()), "batches")
