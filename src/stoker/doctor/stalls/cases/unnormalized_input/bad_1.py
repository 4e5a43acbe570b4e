from tensorflow import keras

(x_train, y_train), _ = keras.datasets.fashion_mnist.load_data()
model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(10, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(x_train, y_train, epochs=5)  #!
