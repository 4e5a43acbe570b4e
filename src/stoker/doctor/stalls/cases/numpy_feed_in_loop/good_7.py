import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
directions = np.random.rand(64)

@tf.function
def blend(batch):
    weights = np.random.rand(8)
    return batch * weights[0], weights

@tf.function
def train_step(batch, weights, ramp):
    return tf.reduce_mean(model(batch) * weights) * ramp

for epoch in range(50):
    ramp = min(1.0, np.exp(epoch / 50 - 1))
    for batch in dataset:
        mixed, weights = blend(batch)
        loss = train_step(mixed, weights, ramp)
        product = tf.reduce_sum(measure(loss) * directions)
