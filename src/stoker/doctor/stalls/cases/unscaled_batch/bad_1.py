import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
print("devices:", strategy.num_replicas_in_sync)
with strategy.scope():
    model = build()
train = tf.data.Dataset.from_tensor_slices((x, y)).batch(64).prefetch(2)  #!
model.fit(train, epochs=5)
