"""The pipeline reads the next batch only when the step asks for it, so reading and training take turns.

TensorFlow adds a prefetch by itself unless autotuning is off, as it is here.
The repair ends the pipeline with `.prefetch`: the next batch is read while the step runs.
"""

import gzip
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.keras.utils.set_random_seed(0)

# Records as CIFAR-10 has them: one byte of label, then the pixels.
records = np.random.default_rng(0).integers(0, 60, (2048, 1 + 3072), np.uint8)
records[:, 0] = records[:, 1] % 10
directory = tempfile.TemporaryDirectory()
file = Path(directory.name) / "train.bin.gz"
file.write_bytes(gzip.compress(records.tobytes(), compresslevel=1))

options = tf.data.Options()
options.autotune.enabled = False
dataset = tf.data.FixedLengthRecordDataset(str(file), 1 + 3072, compression_type="GZIP").with_options(options)
dataset = dataset.repeat(50)
dataset = dataset.batch(2048)  # <-- the stall

model = tf.keras.Sequential([tf.keras.layers.Dense(192, activation="relu"), tf.keras.layers.Dense(10)])
model.build([None, 3072])
optimizer = tf.keras.optimizers.SGD(0.01)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(batch):
    record = tf.io.decode_raw(batch, tf.uint8)
    with tf.GradientTape() as tape:
        loss = loss_of(record[:, 0], model(tf.cast(record[:, 1:], tf.float32) / 255, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


for batch in dataset:
    loss = train_step(batch)

print(f"loss {float(loss):.3f}")
