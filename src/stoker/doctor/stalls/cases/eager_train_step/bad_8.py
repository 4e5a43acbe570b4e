import numpy as np
import tensorflow as tf

def distance(wanted, given):
    return np.mean(np.abs(wanted.numpy() - given.numpy()))

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", loss=distance, run_eagerly=True)  #!
model.fit(x, y)
