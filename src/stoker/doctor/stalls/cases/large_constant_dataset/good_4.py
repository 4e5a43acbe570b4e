import numpy as np
import tensorflow as tf

x = np.random.rand(1000, 32).astype("float32")
train = tf.data.Dataset.from_tensor_slices(x).batch(32)
