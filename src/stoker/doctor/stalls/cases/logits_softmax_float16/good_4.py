from tensorflow import keras

keras.mixed_precision.set_global_policy("mixed_float16")
gate = keras.layers.Dense(64, activation="sigmoid")
logits = keras.layers.Dense(10)
