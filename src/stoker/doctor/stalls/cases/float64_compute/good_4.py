import tensorflow as tf

weights = tf.Variable(tf.random.normal([100, 10]))
layer = tf.keras.layers.Dense(10, dtype="float32")
