import os
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
from tensorflow import keras

model = keras.Sequential()  #!
model.add(keras.layers.Dense(4096, activation="relu"))
model.add(keras.layers.Dense(4096, activation="relu"))
model.add(keras.layers.Dense(1))
model.compile("adam", "mse")
model.fit(x, y, validation_split=0.1)
