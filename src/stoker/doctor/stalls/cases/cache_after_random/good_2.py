import tensorflow as tf

ds = tf.data.Dataset.list_files("*.jpg", shuffle=False)
ds = ds.shuffle(5000, seed=1, reshuffle_each_iteration=False)
train = ds.skip(500).map(decode, num_parallel_calls=8).cache().batch(32)
