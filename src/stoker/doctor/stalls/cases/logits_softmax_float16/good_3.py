from tensorflow import keras

keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = keras.Sequential([keras.layers.Dense(10, activation="softmax")])
