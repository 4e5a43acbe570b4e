import tensorflow as tf

dataset = tf.data.Dataset.from_tensor_slices(texts).map(tokenize, num_parallel_calls=4).batch(32)
