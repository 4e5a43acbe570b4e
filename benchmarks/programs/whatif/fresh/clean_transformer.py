"""A well-made transformer training loop with nothing to repair: compiled step, data on the device, loss read seldom."""

import tensorflow as tf

tf.keras.utils.set_random_seed(2)
VOCAB, LENGTH, WIDTH, BATCH, STEPS = 200, 48, 64, 16, 150
tokens = tf.random.uniform([STEPS, BATCH, LENGTH + 1], 0, VOCAB, tf.int32, seed=2)


def block(x):
    y = tf.keras.layers.LayerNormalization()(x)
    x = x + tf.keras.layers.MultiHeadAttention(4, WIDTH // 4)(y, y, use_causal_mask=True)
    y = tf.keras.layers.LayerNormalization()(x)
    return x + tf.keras.layers.Dense(WIDTH)(tf.keras.layers.Dense(4 * WIDTH, activation="gelu")(y))


ids = tf.keras.Input((LENGTH,), dtype="int32")
h = tf.keras.layers.Embedding(VOCAB, WIDTH)(ids)
for _ in range(2):
    h = block(h)
model = tf.keras.Model(ids, tf.keras.layers.Dense(VOCAB)(h))
optimizer = tf.keras.optimizers.AdamW(1e-3)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function(input_signature=[tf.TensorSpec([BATCH, LENGTH + 1], tf.int32)])
def train_step(sequence):
    with tf.GradientTape() as tape:
        loss = loss_fn(sequence[:, 1:], model(sequence[:, :-1], training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
    return loss


for step in range(STEPS):
    loss = train_step(tokens[step])
    if step % 50 == 0:
        print("step", step, "loss", float(loss))
