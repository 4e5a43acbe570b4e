"""Two stalls in one loop, each to be repaired by itself: `--repair KIND`, once or twice."""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

KINDS = ["numpy-feed-in-loop", "checkpoint-in-loop"]
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--repair", action="append", choices=KINDS, default=[])
args = parser.parse_args()
tf.keras.utils.set_random_seed(0)

rows = np.random.default_rng(0).random((2048, 1024))
data = tf.constant(rows, tf.float32)
model = tf.keras.Sequential([tf.keras.layers.Dense(128), tf.keras.layers.Dense(1)])
model.build([None, 1024])
optimizer = tf.keras.optimizers.SGD(0.00001)
checkpoint = tf.train.Checkpoint(model=model)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - 1.0))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


with tempfile.TemporaryDirectory() as directory:
    for step in range(150):
        start = step % 2 * 1024
        if "numpy-feed-in-loop" in args.repair:
            x = data[start : start + 1024]
        else:
            x = tf.constant(rows[start : start + 1024], tf.float32)
        loss = train_step(x)
        if "checkpoint-in-loop" not in args.repair or step % 50 == 0:
            checkpoint.write(str(Path(directory) / "weights"))

print(f"loss {float(loss):.3f}")
