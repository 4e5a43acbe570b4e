import numpy as np
import tensorflow as tf

data = tf.convert_to_tensor(np.random.rand(1024, 32).astype("float32"))
for step in range(1000):
    train_step(data)
