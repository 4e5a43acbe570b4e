import keras
import numpy as np
import tensorflow as tf

model = keras.Sequential(
    [
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(10),
    ]
)
optimizer = keras.optimizers.Adam()
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
rows = np.random.default_rng(0).random((2048, 256), dtype="float32")
labels = np.zeros(2048, "int64")
data = tf.data.Dataset.from_tensor_slices((rows, labels)).batch(256).repeat(60)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for x, y in data:
    loss = step(x, y)
