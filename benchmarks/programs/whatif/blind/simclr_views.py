"""Contrastive learning (SimCLR): two augmented views of each synthetic texture, NT-Xent loss."""

import sys

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(66)
SIDE, COUNT, BATCH, EPOCHS = 40, 3000, 100, 7


def textures():
    rng = np.random.default_rng(66)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    f, a = rng.uniform(5, 40, (COUNT, 3, 1, 1)), rng.uniform(0, 3.14, (COUNT, 1, 1, 1))
    waves = np.sin(f * (xx * np.cos(a) + yy * np.sin(a)))
    return (127.5 * (1 + waves.transpose(0, 2, 3, 1))).astype("uint8")


def view(image):
    image = tf.image.resize_with_crop_or_pad(image, SIDE + 12, SIDE + 12)
    image = tf.image.random_crop(image, [SIDE - 8, SIDE - 8, 3])
    image = tf.image.resize(image, [SIDE, SIDE], method="bicubic")
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, 0.3)
    image = tf.image.random_contrast(image, 0.6, 1.4)
    image = tf.image.random_saturation(image, 0.6, 1.4)
    return image


def two_views(image):
    image = tf.image.convert_image_dtype(image, tf.float32)
    return view(image), view(image)


ds = tf.data.Dataset.from_tensor_slices(textures()).shuffle(COUNT, seed=6)
if "map-without-parallel-calls" in REPAIRED:
    ds = ds.map(two_views, num_parallel_calls=tf.data.AUTOTUNE)
else:
    ds = ds.map(two_views)  # stall: map-without-parallel-calls
if "missing-prefetch" in REPAIRED:
    ds = ds.batch(BATCH).prefetch(tf.data.AUTOTUNE)
else:
    ds = ds.batch(BATCH)  # stall: missing-prefetch

encoder = tf.keras.Sequential(
    [
        layers.Input((SIDE, SIDE, 3)),
        layers.Conv2D(16, 3, strides=2, activation="relu"),
        layers.Conv2D(32, 3, strides=2, activation="relu"),
        layers.Conv2D(64, 3, strides=2, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(64, activation="relu"),
        layers.Dense(32),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)


@tf.function
def contrast(one, two):
    with tf.GradientTape() as tape:
        z = tf.math.l2_normalize(encoder(tf.concat([one, two], 0), training=True), axis=1)
        n = tf.shape(one)[0]
        sim = tf.matmul(z, z, transpose_b=True) / 0.2 - 1e9 * tf.eye(2 * n)
        partner = tf.concat([tf.range(n, 2 * n), tf.range(n)], 0)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=partner, logits=sim))
    optimizer.apply_gradients(zip(tape.gradient(loss, encoder.trainable_variables), encoder.trainable_variables))
    return loss


for epoch in range(EPOCHS):
    meter = tf.keras.metrics.Mean()
    for one, two in ds:
        meter.update_state(contrast(one, two))
    print("epoch", epoch, "nt-xent", float(meter.result()))
