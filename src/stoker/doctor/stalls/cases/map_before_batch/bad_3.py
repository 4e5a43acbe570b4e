import tensorflow as tf

ds = tf.data.Dataset.from_tensor_slices((x, y))
ds = ds.map(lambda a, b: (a, tf.one_hot(b, 10)), num_parallel_calls=4)  #!
ds = ds.batch(32)
