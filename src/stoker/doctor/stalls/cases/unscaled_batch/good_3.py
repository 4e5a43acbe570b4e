import tensorflow as tf

strategy = tf.distribute.OneDeviceStrategy("GPU:0")
with strategy.scope():
    model = build()
model.fit(x, y, batch_size=32)
