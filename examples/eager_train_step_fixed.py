"""The repair of eager_train_step.py.

The training step is a tf.function: one call runs the whole graph.
"""

import tensorflow as tf

tf.keras.utils.set_random_seed(0)

inputs = tf.random.normal([128, 256])
labels = tf.cast(tf.argmax(inputs[:, :10], axis=1), tf.int32)
model = tf.keras.Sequential([tf.keras.layers.Dense(256, activation="relu") for _ in range(3)])
model.add(tf.keras.layers.Dense(10))
optimizer = tf.keras.optimizers.Adam(0.0001)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


for _step in range(150):
    loss = train_step(inputs, labels)

print(f"loss {float(loss):.2f}")
