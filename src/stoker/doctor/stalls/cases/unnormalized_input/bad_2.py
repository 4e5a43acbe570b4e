import tensorflow as tf

(x, y), (a, b) = tf.keras.datasets.cifar10.load_data()
train = tf.data.Dataset.from_tensor_slices((x, y)).batch(64).prefetch(2)
model = tf.keras.Sequential([tf.keras.layers.Conv2D(32, 3), tf.keras.layers.Dense(10)])
model.fit(train, epochs=10)  #!
