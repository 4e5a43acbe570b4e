from tensorflow import keras

model = keras.Sequential()
model.add(keras.layers.Dense(64, activation="relu"))
model.add(keras.layers.Dense(10))
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])  #!
