import tensorflow as tf

(x, y), _ = tf.keras.datasets.cifar10.load_data()
y = tf.keras.utils.to_categorical(y, 10)
model = tf.keras.Sequential([tf.keras.layers.Dense(10, activation="softmax")])
model.compile(optimizer="adam", loss=tf.keras.losses.SparseCategoricalCrossentropy())  #!
model.fit(x, y)
