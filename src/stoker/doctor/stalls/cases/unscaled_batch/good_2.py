import tensorflow as tf

train = tf.data.Dataset.from_tensor_slices((x, y)).batch(64).prefetch(2)
model.fit(train, epochs=5)
