"""A cheap lookup runs once per row: most of its time is the cost of the call.

The repair batches first, so that one call looks up the whole batch.
"""

import tensorflow as tf

tf.keras.utils.set_random_seed(0)

words = tf.strings.as_string(tf.range(1000))
table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(words, tf.range(1000)), default_value=0)
rows = tf.gather(words, tf.random.uniform([16384, 4], maxval=1000, dtype=tf.int32))

dataset = tf.data.Dataset.from_tensor_slices(rows).repeat(10)
dataset = dataset.map(table.lookup)  # <-- the stall
dataset = dataset.shuffle(1024, seed=0).batch(4096)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

model = tf.keras.Sequential(
    [tf.keras.layers.Embedding(1000, 32), tf.keras.layers.Flatten(), tf.keras.layers.Dense(512)]
)
model.add(tf.keras.layers.Dense(1))
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def train_step(tokens):
    with tf.GradientTape() as tape:
        target = tf.reduce_mean(tf.cast(tokens, tf.float32), axis=1, keepdims=True) / 1000
        loss = tf.reduce_mean(tf.square(model(tokens, training=True) - target))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


for tokens in dataset:
    loss = train_step(tokens)

print(f"loss {float(loss):.3f}")
