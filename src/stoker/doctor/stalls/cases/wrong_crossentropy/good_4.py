from tensorflow import keras

model = keras.Sequential([keras.layers.Dense(10), keras.layers.Softmax()])
model.compile("adam", "sparse_categorical_crossentropy")
