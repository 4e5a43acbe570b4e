"""A 1-D convolutional network tells rising from falling chirps, the recordings being synthesised on the fly."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(31)
N, LENGTH, BATCH = 3200, 512, 16
rng = np.random.default_rng(31)
base = rng.uniform(20, 60, N).astype("float32")
label = rng.integers(0, 2, N).astype("int32")
slope = (rng.uniform(5, 25, N) * np.where(label == 1, 1, -1)).astype("float32")
clock = np.linspace(0, 1, LENGTH, dtype="float32")


def recordings():
    for f, s, y in zip(base, slope, label, strict=True):
        wave = np.sin(2 * np.pi * (f * clock + s * clock**2 / 2))
        echo = np.concatenate([np.zeros(40), wave[:-40]]) * 0.4
        envelope = np.array([np.exp(-((t - 0.5) ** 2) / 0.08) for t in clock])
        yield ((wave + echo) * envelope).astype("float32")[:, None], y


def recordings_tf(f, s, y):
    t = tf.constant(clock)[None]
    wave = tf.sin(2 * np.pi * (f[:, None] * t + s[:, None] * t**2 / 2))
    echo = tf.pad(wave[:, :-40], [[0, 0], [40, 0]]) * 0.4
    return ((wave + echo) * tf.exp(-((t - 0.5) ** 2) / 0.08))[..., None], y


if "python-input-pipeline" in REPAIRED:
    ds = tf.data.Dataset.from_tensor_slices((base, slope, label)).batch(BATCH).map(recordings_tf, tf.data.AUTOTUNE)
else:
    signature = (tf.TensorSpec([LENGTH, 1], tf.float32), tf.TensorSpec([], tf.int32))
    ds = tf.data.Dataset.from_generator(recordings, output_signature=signature)  # stall: python-input-pipeline
    ds = ds.batch(BATCH)
ds = ds.repeat().prefetch(tf.data.AUTOTUNE)

net = tf.keras.Sequential(
    [
        tf.keras.Input((LENGTH, 1)),
        tf.keras.layers.Conv1D(16, 9, strides=4, activation="relu"),
        tf.keras.layers.Conv1D(32, 9, strides=4, activation="relu"),
        tf.keras.layers.GlobalMaxPooling1D(),
        tf.keras.layers.Dense(2),
    ]
)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(1e-3)


@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, net(x, training=True))
    optimizer.apply(tape.gradient(loss, net.trainable_variables), net.trainable_variables)
    return loss


for step, (x, y) in enumerate(ds.take(800)):
    loss = train(x, y)
    if step % 100 == 0:
        print("step", step, "loss", float(loss))
