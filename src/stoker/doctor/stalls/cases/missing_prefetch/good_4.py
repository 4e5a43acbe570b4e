import tensorflow as tf

dataset = tf.data.Dataset.from_tensor_slices(x).batch(32)
for batch in dataset.take(1):
    model(batch)
