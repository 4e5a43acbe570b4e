import tensorflow as tf

(x, y), _ = tf.keras.datasets.mnist.load_data()
y = tf.keras.utils.to_categorical(y)
model = tf.keras.Sequential([tf.keras.layers.Dense(10, activation="softmax")])
model.compile(optimizer="adam", loss="categorical_crossentropy")
model.fit(x, y)
