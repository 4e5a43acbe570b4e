import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
batch = 64 * strategy.num_replicas_in_sync
train = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch).prefetch(2)
model.fit(train, epochs=5)
