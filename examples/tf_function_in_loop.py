"""The tf.function is defined inside the epoch loop, so every epoch traces and optimises it again.

The repair defines it once, before the loop.
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

for epoch in range(30):
    optimizer.learning_rate.assign(0.002 * 0.95**epoch)

    @tf.function  # <-- the stall
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    for _ in range(5):
        loss = train_step(inputs, targets)

print(f"loss {float(loss):.3f}")
