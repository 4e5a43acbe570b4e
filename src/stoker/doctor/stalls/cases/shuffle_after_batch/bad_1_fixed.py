import tensorflow as tf

ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).batch(32)
model.fit(ds.prefetch(2))
