"""A small U-shaped net on the software GPU, which reads its loss and a mask at every step and feeds NumPy pictures."""
# device: software-gpu

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
pictures = np.random.default_rng(0).random((64, 32, 32, 3))
masks = (pictures.mean(-1, keepdims=True) > 0.5).astype("float32")
inputs = tf.keras.Input((32, 32, 3))
down = tf.keras.layers.Conv2D(16, 3, 2, "same", activation="relu")(inputs)
deep = tf.keras.layers.Conv2D(32, 3, 2, "same", activation="relu")(down)
up = tf.keras.layers.Conv2DTranspose(16, 3, 2, "same", activation="relu")(deep)
up = tf.keras.layers.Conv2DTranspose(8, 3, 2, "same", activation="relu")(
    tf.keras.layers.Concatenate()([up, down])
)
model = tf.keras.Model(inputs, tf.keras.layers.Conv2D(1, 1)(up))
optimizer = tf.keras.optimizers.Adam(1e-3)
on_device, masks_on_device = tf.constant(pictures, tf.float32), tf.constant(masks)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss, logits


scores = []
for step in range(60):
    start = step * 8 % 64
    if "numpy-feed-in-loop" in REPAIRED:
        x, y = on_device[start : start + 8], masks_on_device[start : start + 8]
    else:
        x = tf.constant(pictures[start : start + 8], tf.float32)  # stall: numpy-feed-in-loop
        y = tf.constant(masks[start : start + 8])  # stall: numpy-feed-in-loop
    loss, logits = train_step(x, y)
    if "sync-in-loop" not in REPAIRED or step % 50 == 0:
        scores.append(float(loss))  # stall: sync-in-loop
        scores.append(float((logits.numpy() > 0).mean()))  # stall: sync-in-loop
