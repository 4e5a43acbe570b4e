import tensorflow as tf

tf.keras.backend.set_floatx("float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
