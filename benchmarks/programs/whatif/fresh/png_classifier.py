"""Pictures kept as PNG bytes are decoded and resized, and a CNN learns which half of them is brighter."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(50)
AUTO = tf.data.AUTOTUNE


def make_files(n=256):
    rng = np.random.default_rng(50)
    files, labels = [], []
    for _ in range(n):
        side = int(rng.integers(0, 2))
        coarse = rng.integers(0, 160, size=(8, 8, 3))
        coarse[:, side * 4 : side * 4 + 4] += 60
        image = np.kron(coarse, np.ones((16, 16, 1))) + rng.integers(0, 30, size=(128, 128, 3))
        files.append(tf.io.encode_png(image.astype("uint8")).numpy())
        labels.append(side)
    return files, labels


def load(data, label):
    image = tf.image.convert_image_dtype(tf.io.decode_png(data, channels=3), tf.float32)
    image = tf.image.resize(image, [48, 48], method="bicubic", antialias=True)
    image = tf.image.adjust_saturation(tf.image.per_image_standardization(image), 0.8)
    return image, label


files, labels = make_files()
ds = tf.data.Dataset.from_tensor_slices((files, labels)).repeat()
if "map-without-parallel-calls" in REPAIRED:
    ds = ds.map(load, num_parallel_calls=AUTO)
else:
    ds = ds.map(load)  # stall: map-without-parallel-calls
ds = ds.batch(16)  # stall: missing-prefetch
if "missing-prefetch" in REPAIRED:
    ds = ds.prefetch(AUTO)

model = tf.keras.Sequential(
    [
        tf.keras.Input((48, 48, 3)),
        tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        tf.keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(2),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)
criterion = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        loss = criterion(labels, model(images, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
    return loss


for step, (images, y) in enumerate(ds.take(300)):
    loss = train_step(images, y)
    if step % 60 == 0:
        print("step", step, "loss", float(loss))
