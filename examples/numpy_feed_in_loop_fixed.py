"""The repair of numpy_feed_in_loop.py.

The batches become tensors once, before the loop.
"""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)

rng = np.random.default_rng(0)
images = tf.constant(rng.random((512, 64, 64, 3)), tf.float32)
labels = tf.constant(rng.integers(0, 10, 512))
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


batches = [(images[start : start + 128], labels[start : start + 128]) for start in range(0, 512, 128)]
for _epoch in range(150):
    for x, y in batches:
        loss = train_step(x, y)

print(f"loss {float(loss):.3f}")
