"""Every step converts a NumPy batch (float64, as NumPy makes them) and copies it to the device.

The repair converts the whole array once before the loop and takes each batch from the tensor.
"""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)

rng = np.random.default_rng(0)
images = rng.random((512, 64, 64, 3))
labels = rng.integers(0, 10, 512)
model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(32), tf.keras.layers.Dense(10)])
model.build([None, 64, 64, 3])
optimizer = tf.keras.optimizers.SGD(0.0001)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


for _epoch in range(150):
    for start in range(0, 512, 128):
        x = tf.constant(images[start : start + 128], tf.float32)  # <-- the stall
        y = tf.constant(labels[start : start + 128])
        loss = train_step(x, y)

print(f"loss {float(loss):.3f}")
