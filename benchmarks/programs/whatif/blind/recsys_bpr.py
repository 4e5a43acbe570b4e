"""Bayesian personalised ranking with item content features; the triples are drawn in NumPy and weights saved often."""

import os
import sys
import tempfile

import numpy as np
import tensorflow as tf

repairs = set(sys.argv[1:])
rng = np.random.default_rng(77)
tf.keras.utils.set_random_seed(77)

USERS, ITEMS, CONTENT, RANK = 6000, 3000, 600, 48
STEPS, BATCH, SAVE_EVERY = 900, 512, 5

# Items have noisy bag-of-tags vectors; a user likes items near a private taste vector.
content = (rng.random((ITEMS, CONTENT)) < 0.05) + 0.05 * rng.standard_normal((ITEMS, CONTENT))
taste = rng.standard_normal((USERS, 16))
item_latent = content @ rng.standard_normal((CONTENT, 16)) * 0.2
users = rng.integers(0, USERS, STEPS * BATCH).astype(np.int32)
pair = rng.integers(0, ITEMS, (2, STEPS * BATCH)).astype(np.int32)
score = np.einsum("nk,pnk->pn", taste[users], item_latent[pair])
pos = np.where(score[0] > score[1], pair[0], pair[1])
neg = np.where(score[0] > score[1], pair[1], pair[0])


class BPR(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.user = tf.keras.layers.Embedding(USERS, RANK)
        self.item_tower = tf.keras.Sequential([tf.keras.layers.Dense(96, activation="relu"), tf.keras.layers.Dense(RANK)])

    def call(self, inputs):
        u, p, n = inputs
        gap = self.item_tower(p) - self.item_tower(n)
        return tf.reduce_sum(self.user(u) * gap, axis=-1)


model = BPR()
model((np.zeros(1, np.int32), np.zeros((1, CONTENT), "float32"), np.zeros((1, CONTENT), "float32")))
opt = tf.keras.optimizers.Adam(3e-3)
opt.build(model.trainable_variables)
smooth = tf.Variable(0.69)


@tf.function
def update(u, p, n):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.softplus(-model((u, p, n))))
    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    smooth.assign(0.97 * smooth + 0.03 * loss)


if "numpy-feed-in-loop" in repairs:
    content_t = tf.constant(content, tf.float32)
    users_t, pos_t, neg_t = tf.constant(users), tf.constant(pos), tf.constant(neg)

    @tf.function
    def update_rows(step):
        rows = step * BATCH + tf.range(BATCH)
        update(
            tf.gather(users_t, rows),
            tf.gather(content_t, tf.gather(pos_t, rows)),
            tf.gather(content_t, tf.gather(neg_t, rows)),
        )


with tempfile.TemporaryDirectory() as folder:
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, opt=opt), os.path.join(folder, "bpr"), max_to_keep=2)
    for step in range(STEPS):
        if "numpy-feed-in-loop" in repairs:
            update_rows(tf.constant(step))
        else:
            rows = slice(step * BATCH, (step + 1) * BATCH)
            liked, other = content[pos[rows]], content[neg[rows]]
            update(users[rows], liked.astype("float32"), other.astype("float32"))  # stall: numpy-feed-in-loop
        if "checkpoint-in-loop" not in repairs and step % SAVE_EVERY == 0:
            manager.save()  # stall: checkpoint-in-loop
        if step % 180 == 0:
            tf.print("step", step, "bpr loss", smooth)
    manager.save()
tf.print("final bpr loss", smooth)
