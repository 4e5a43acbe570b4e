import tensorflow as tf

ds = tf.data.Dataset.from_tensor_slices(paths).shuffle(10000)
ds = ds.map(decode, num_parallel_calls=8).cache().shuffle(1000).batch(32)
