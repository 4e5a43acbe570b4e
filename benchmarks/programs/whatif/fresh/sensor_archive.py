"""Keras fits a GRU on sensor readings that lie in a compressed record file, read again from the disk at every epoch."""

import os
import sys
import tempfile

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(60)
ROWS, LENGTH, CHANNELS = 1536, 400, 6


def write_archive(path):
    rng = np.random.default_rng(60)
    with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type="GZIP", compression_level=1)) as out:
        for _ in range(ROWS):
            readings = np.cumsum(rng.normal(size=(LENGTH, CHANNELS)), axis=0).astype("float32")
            text = [",".join(f"{v:.3f}" for v in line).encode() for line in readings]
            out.write(tf.io.serialize_tensor(tf.constant(text)).numpy())


def parse(record):
    lines = tf.ensure_shape(tf.io.parse_tensor(record, tf.string), [LENGTH])
    columns = tf.io.decode_csv(lines, [0.0] * CHANNELS)
    series = tf.stack(columns, axis=1)
    series = tf.reduce_mean(tf.reshape(series, [20, LENGTH // 20, CHANNELS]), axis=1)
    return series[:-1] / 10.0, series[-1] / 10.0


class Progress(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch % 32 == 0:
            print("  batch", batch, "loss", round(float(logs["loss"]), 4))


with tempfile.TemporaryDirectory() as folder:
    archive = os.path.join(folder, "sensors.tfrecord.gz")
    write_archive(archive)
    ds = tf.data.TFRecordDataset(archive, compression_type="GZIP").map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    if "input-starved" in REPAIRED:
        ds = ds.cache()
    ds = ds.batch(32).prefetch(tf.data.AUTOTUNE)
    model = tf.keras.Sequential(
        [tf.keras.Input((19, CHANNELS)), tf.keras.layers.GRU(16), tf.keras.layers.Dense(CHANNELS)]
    )
    model.compile(optimizer=tf.keras.optimizers.Adam(3e-3), loss="mse")
    model.fit(ds, epochs=12, verbose=0, callbacks=[Progress()])  # stall: input-starved
