import tensorflow as tf

print(tf.config.list_physical_devices("GPU"))
model = tf.keras.Sequential([tf.keras.layers.Dense(64), tf.keras.layers.Dense(10)])
model.compile("adam", "mse")
model.fit(x, y, validation_split=0.1)
