"""A checkpoint after every step: writing the weights takes longer than training them.

The repair saves every 40 steps.
"""

import tempfile

import tensorflow as tf

tf.keras.utils.set_random_seed(0)

inputs = tf.random.normal([128, 512])
targets = tf.reduce_sum(inputs[:, :8], axis=1, keepdims=True)
model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu") for _ in range(3)])
model.add(tf.keras.layers.Dense(1))
optimizer = tf.keras.optimizers.SGD(0.001)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


with tempfile.TemporaryDirectory() as directory:
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    manager = tf.train.CheckpointManager(checkpoint, directory, max_to_keep=2)
    for step in range(1, 201):
        loss = train_step(inputs, targets)
        manager.save(step)  # <-- the stall

print(f"loss {float(loss):.3f}")
