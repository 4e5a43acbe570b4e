"""A recommender of user and item embeddings plus item features is trained on shuffled ratings kept in NumPy."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(99)
N_USERS, N_ITEMS, N_RATINGS, BATCH = 1000, 400, 24000, 256

rng = np.random.default_rng(99)
users = rng.integers(0, N_USERS, N_RATINGS)
items = rng.integers(0, N_ITEMS, N_RATINGS)
features = rng.normal(size=(N_RATINGS, 300))  # context of each rating, in double precision
ratings = np.clip(rng.normal(3.5, 1.0, N_RATINGS) + features[:, 0], 1, 5)

user_in, item_in, feat_in = tf.keras.Input((), dtype="int32"), tf.keras.Input((), dtype="int32"), tf.keras.Input((300,))
u = tf.keras.layers.Embedding(N_USERS, 16)(user_in)
v = tf.keras.layers.Embedding(N_ITEMS, 16)(item_in)
f = tf.keras.layers.Dense(16, activation="relu")(feat_in)
hidden = tf.keras.layers.Dense(32, activation="relu")(tf.keras.layers.Concatenate()([u, v, f]))
model = tf.keras.Model([user_in, item_in, feat_in], tf.keras.layers.Dense(1)(hidden))
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def train_step(u, i, f, r):
    with tf.GradientTape() as tape:
        error = model([u, i, f])[:, 0] - r
        loss = tf.reduce_mean(error**2)
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


mean, spread = features.mean(axis=0), features.std(axis=0)
on_device = "numpy-feed-in-loop" in REPAIRED
if on_device:
    t_users, t_items = tf.constant(users, tf.int32), tf.constant(items, tf.int32)
    t_features, t_ratings = tf.constant((features - mean) / spread, tf.float32), tf.constant(ratings, tf.float32)


@tf.function
def train_on_rows(order, first):
    pick = order[first : first + BATCH]
    return train_step(*[tf.gather(t, pick) for t in (t_users, t_items, t_features, t_ratings)])


STEPS_PER_EPOCH = N_RATINGS // BATCH
for step in range(60 * STEPS_PER_EPOCH):
    where = step % STEPS_PER_EPOCH
    if where == 0:
        order = rng.permutation(N_RATINGS)
        t_order = tf.constant(order)
    if on_device:
        loss = train_on_rows(t_order, tf.constant(where * BATCH))
    else:
        pick = order[where * BATCH : (where + 1) * BATCH]
        scaled = (features[pick] - mean) / spread
        ids = [tf.constant(users[pick], tf.int32), tf.constant(items[pick], tf.int32)]
        values = [tf.constant(scaled, tf.float32), tf.constant(ratings[pick], tf.float32)]  # stall: numpy-feed-in-loop
        loss = train_step(*ids, *values)
    if where == 0:
        print("epoch", step // STEPS_PER_EPOCH, "rmse", float(loss) ** 0.5)
