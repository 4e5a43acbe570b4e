import numpy as np
import tensorflow as tf

scale = np.ones((32, 4), dtype="float32")

@tf.function
def train_step(rows):
    return tf.reduce_mean(tf.multiply(rows, scale))

table = tf.random.normal([1024, 4])
order = np.random.permutation(1024)
for start in range(0, 1024, 32):
    rows = tf.gather(table, order[start : start + 32])
    train_step(tf.reduce_sum(rows, axis=np.array([1]), keepdims=True))
print(tf.reduce_mean(tf.math.abs(scale)))
