"""A triplet net: triplets drawn by a generator in Python, checkpoints after every step."""

import sys
import tempfile

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
faces = np.random.default_rng(0).random((600, 12, 12, 1)).astype("float32")
people = np.random.default_rng(1).integers(0, 20, 600)
by_person = [np.flatnonzero(people == p) for p in range(20)]
tower = tf.keras.Sequential(
    [
        tf.keras.Input((12, 12, 1)),
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(24),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)


def triplets():
    chance = np.random.default_rng(2)
    while True:
        mine, other = chance.choice(20, 2, replace=False)
        anchor, positive = chance.choice(by_person[mine], 2)
        negative = chance.choice(by_person[other])
        yield np.stack([faces[anchor], faces[positive], faces[negative]])


if "python-input-pipeline" in REPAIRED:
    rows = np.random.default_rng(2).integers(0, 600, (4096, 3))
    stored = tf.constant(faces)
    data = tf.data.Dataset.from_tensor_slices(rows).repeat().batch(32).map(lambda r: tf.gather(stored, r))
else:
    spec = tf.TensorSpec((3, 12, 12, 1))
    data = tf.data.Dataset.from_generator(triplets, output_signature=spec)  # stall: python-input-pipeline
    data = data.batch(32)
data = data.prefetch(2)


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        a, p, n = (tf.math.l2_normalize(tower(batch[:, i]), axis=1) for i in range(3))
        near, far = tf.reduce_sum((a - p) ** 2, 1), tf.reduce_sum((a - n) ** 2, 1)
        loss = tf.reduce_mean(tf.nn.relu(near - far + 0.2))
    optimizer.apply_gradients(zip(tape.gradient(loss, tower.trainable_variables), tower.trainable_variables))
    return loss


with tempfile.TemporaryDirectory() as directory:
    checkpoint = tf.train.Checkpoint(tower=tower, optimizer=optimizer)
    for step, batch in zip(range(50), data):
        train_step(batch)
        if "checkpoint-in-loop" not in REPAIRED or step % 50 == 0:
            checkpoint.write(directory + "/tower")  # stall: checkpoint-in-loop
