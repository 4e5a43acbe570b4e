"""A small GAN: generator and discriminator under two tapes, images from a Python generator, both losses logged."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
BATCH = 16
images = np.random.default_rng(0).random((512, 16, 16, 1)).astype("float32")

generator = tf.keras.Sequential(
    [
        tf.keras.Input((32,)),
        tf.keras.layers.Dense(4 * 4 * 32),
        tf.keras.layers.Reshape((4, 4, 32)),
        tf.keras.layers.Conv2DTranspose(16, 4, 2, "same", activation="relu"),
        tf.keras.layers.Conv2DTranspose(1, 4, 2, "same", activation="sigmoid"),
    ]
)
discriminator = tf.keras.Sequential(
    [
        tf.keras.Input((16, 16, 1)),
        tf.keras.layers.Conv2D(16, 3, 2, "same", activation="relu"),
        tf.keras.layers.Conv2D(32, 3, 2, "same", activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(1),
    ]
)
of_generator, of_discriminator = tf.keras.optimizers.Adam(1e-4), tf.keras.optimizers.Adam(1e-4)
entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)


def rows():
    order = np.random.default_rng(1)
    while True:
        picture = images[order.integers(len(images))]
        yield np.clip(picture + order.normal(0, 0.01, picture.shape), 0, 1).astype("float32")


if "python-input-pipeline" in REPAIRED:
    data = tf.data.Dataset.from_tensor_slices(images).shuffle(512).repeat().batch(BATCH)
    data = data.map(lambda x: tf.clip_by_value(x + tf.random.normal(tf.shape(x), 0, 0.01), 0, 1))
else:
    data = tf.data.Dataset.from_generator(
        rows, output_signature=tf.TensorSpec((16, 16, 1))
    )  # stall: python-input-pipeline
    data = data.batch(BATCH)
data = data.prefetch(2)


def train_step(real):
    noise = tf.random.normal([BATCH, 32])
    with tf.GradientTape() as tape_g, tf.GradientTape() as tape_d:  # stall: eager-train-step
        fake = generator(noise, training=True)
        judged_real = discriminator(real, training=True)
        judged_fake = discriminator(fake, training=True)
        loss_g = entropy(tf.ones_like(judged_fake), judged_fake)
        loss_d = entropy(tf.ones_like(judged_real), judged_real) + entropy(
            tf.zeros_like(judged_fake), judged_fake
        )
    gradients_g = tape_g.gradient(loss_g, generator.trainable_variables)
    gradients_d = tape_d.gradient(loss_d, discriminator.trainable_variables)
    of_generator.apply_gradients(zip(gradients_g, generator.trainable_variables))
    of_discriminator.apply_gradients(zip(gradients_d, discriminator.trainable_variables))
    return loss_g, loss_d


if "eager-train-step" in REPAIRED:
    train_step = tf.function(train_step)

history = []
for step, real in zip(range(24), data):
    loss_g, loss_d = train_step(real)
    history.append((float(loss_g), float(loss_d)))
