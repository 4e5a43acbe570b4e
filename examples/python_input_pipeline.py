"""Rows come out of a Python generator one by one, scaled by NumPy: one thread, under the GIL.

The repair hands the array to tf.data and scales whole batches there.
"""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)

table = np.random.default_rng(0).normal(5, 3, (12288, 256)).astype(np.float32)
mean, deviation = table.mean(axis=0), table.std(axis=0)


def rows():
    for row in table:
        yield (row - mean) / deviation


dataset = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([256]))  # <-- the stall
dataset = dataset.batch(1024).prefetch(tf.data.AUTOTUNE)

model = tf.keras.Sequential([tf.keras.layers.Dense(1024, activation="relu"), tf.keras.layers.Dense(256)])
model.compile("sgd", "mse")


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - x))
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply(gradients, model.trainable_variables)
    return loss


for x in dataset.repeat(3):
    loss = train_step(x)

print(f"loss {float(loss):.3f}")
