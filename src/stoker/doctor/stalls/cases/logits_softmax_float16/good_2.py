from tensorflow import keras

model = keras.Sequential([keras.layers.Dense(10, activation="softmax")])
