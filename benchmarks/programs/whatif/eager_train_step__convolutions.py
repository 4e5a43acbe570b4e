"""A small convolutional net trained op by op; the repair makes the step a graph."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)

rng = np.random.default_rng(0)
images = tf.constant(rng.normal(size=(32, 24, 24, 3)).astype(np.float32))
labels = tf.constant(rng.integers(0, 5, 32))
model = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(8, 3, activation="relu"),
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(5),
    ]
)
optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)


def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


for _step in range(200):
    loss = train_step(images, labels)

print(f"loss {float(loss):.2f}")
