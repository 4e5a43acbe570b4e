from tensorflow import keras

model = keras.Sequential([keras.layers.Conv2D(128, 3), keras.layers.Flatten(), keras.layers.Dense(10)])
model.compile("adam", "mse")
model.fit(x, y, validation_split=0.1)
