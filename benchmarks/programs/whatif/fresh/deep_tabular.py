"""A deep residual network for house prices whose gradient sizes are all written down at each step."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(70)
EVERY = 100


def residual_mlp(width=48, depth=12):
    inputs = x = tf.keras.Input((20,))
    x = tf.keras.layers.Dense(width)(x)
    for _ in range(depth):
        y = tf.keras.layers.LayerNormalization()(x)
        y = tf.keras.layers.Dense(width, activation="gelu")(y)
        x = tf.keras.layers.Add()([x, y])
    return tf.keras.Model(inputs, tf.keras.layers.Dense(1)(x))


model = residual_mlp()
optimizer = tf.keras.optimizers.SGD(1e-3)
rng = np.random.default_rng(70)
X = rng.normal(size=(6400, 20)).astype("float32")
price = (X[:, :5].sum(axis=1) + np.sin(3 * X[:, 6]))[:, None].astype("float32")
data = tf.data.Dataset.from_tensor_slices((X, price)).batch(64).cache().repeat().prefetch(4)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
    return loss, tf.stack([tf.norm(g) for g in grads]) if "sync-in-loop" in REPAIRED else grads


largest, losses = [], []
for step, (x, y) in enumerate(data.take(1200)):
    loss, sizes = train_step(x, y)
    if "sync-in-loop" in REPAIRED:
        losses.append(loss)
        largest.append(sizes)
    else:
        losses.append(loss.numpy())
        largest.append([float(tf.norm(g)) for g in sizes])  # stall: sync-in-loop
    if step % EVERY == EVERY - 1:
        recent = tf.stack(largest[-EVERY:]).numpy()
        print(f"{step + 1}: loss {tf.stack(losses[-EVERY:]).numpy().mean():.4f}, largest gradient {recent.max():.3f}")
