import tensorflow as tf

ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(32).shuffle(1000)  #!
model.fit(ds.prefetch(2))
