from tensorflow import keras
import tensorflow as tf

inputs = keras.Input((32,), dtype=tf.float64)  #!
outputs = keras.layers.Dense(1, dtype="float64")(inputs)  #!
