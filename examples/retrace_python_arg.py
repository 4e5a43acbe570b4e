"""The learning rate is a Python float: each new value is a new function to TensorFlow, traced from scratch.

The repair passes it as a tensor, which may have any value.
"""

import tensorflow as tf

tf.keras.utils.set_random_seed(0)

inputs = tf.random.normal([256, 256])
targets = tf.reduce_sum(inputs[:, :8], axis=1, keepdims=True)
model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu") for _ in range(3)])
model.add(tf.keras.layers.Dense(1))
model.build([None, 256])
optimizer = tf.keras.optimizers.SGD()
optimizer.build(model.trainable_variables)


@tf.function
def train_step(x, y, rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.learning_rate.assign(rate)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


for step in range(120):
    rate = 0.002 * 0.9 ** (step // 3)
    loss = train_step(inputs, targets, rate)  # <-- the stall

print(f"loss {float(loss):.3f}")
