"""The repair of retrace_shape.py.

The length is left open in an `input_signature`: one trace serves sentences of any length.
"""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)

lengths = np.random.default_rng(0).permutation(np.arange(20, 60))
batches = [tf.random.uniform([16, length], maxval=1000, dtype=tf.int32) for length in lengths]
model = tf.keras.Sequential(
    [
        tf.keras.layers.Embedding(1000, 128),
        tf.keras.layers.Dense(256, activation="relu"),
        tf.keras.layers.Dense(256, activation="relu"),
        tf.keras.layers.Dense(1000),
    ]
)
model.build([None, None])
optimizer = tf.keras.optimizers.SGD(0.01)
optimizer.build(model.trainable_variables)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
def train_step(tokens):
    with tf.GradientTape() as tape:
        loss = loss_of(tokens[:, 1:], model(tokens[:, :-1], training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


for tokens in batches:
    loss = train_step(tokens)

print(f"loss {float(loss):.2f}")
