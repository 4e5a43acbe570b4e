import keras

keras.config.set_dtype_policy("mixed_float16")
inputs = keras.Input((8,))
probabilities = keras.layers.Softmax()(keras.layers.Dense(5)(inputs))  #!
model = keras.Model(inputs, probabilities)
