from tensorflow.keras import Sequential, layers, mixed_precision

mixed_precision.set_global_policy("mixed_float16")
model = Sequential()
model.add(layers.Conv2D(32, 3))
model.add(layers.Dense(1, activation="sigmoid"))  #!
model.compile("adam", "binary_crossentropy")
