import numpy as np
import tensorflow as tf

data = np.random.rand(1024, 32).astype("float32")

@tf.function
def train_step(x):
    return tf.reduce_sum(x)

for step in range(1000):
    x = tf.convert_to_tensor(data)  #!
    train_step(x)
