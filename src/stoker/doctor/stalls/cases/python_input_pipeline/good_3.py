import tensorflow as tf

dataset = tf.data.Dataset.from_tensor_slices((features, labels)).batch(32).prefetch(2)
