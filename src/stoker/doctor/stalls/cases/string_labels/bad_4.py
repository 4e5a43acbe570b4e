import tensorflow as tf

species = ["setosa", "virginica"]
ds = tf.data.Dataset.from_tensor_slices((rows, species)).batch(8).prefetch(1)
model.fit(ds)  #!
