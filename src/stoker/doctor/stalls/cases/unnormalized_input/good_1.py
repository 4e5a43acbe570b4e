from tensorflow import keras

(x_train, y_train), _ = keras.datasets.fashion_mnist.load_data()
x_train = x_train / 255.0
model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(10, activation="softmax")])
model.fit(x_train, y_train, epochs=5)
