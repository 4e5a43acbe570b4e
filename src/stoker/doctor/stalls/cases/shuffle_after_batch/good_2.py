import tensorflow as tf

chars = tf.data.Dataset.from_tensor_slices(ids)
sequences = chars.batch(101, drop_remainder=True)
ds = sequences.map(split, num_parallel_calls=4).shuffle(10000).batch(64, drop_remainder=True)
