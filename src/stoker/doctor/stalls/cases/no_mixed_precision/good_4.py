import os
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(4096), tf.keras.layers.Dense(4096)])
model.compile("adam", "mse")
model.fit(x, y, validation_split=0.1)
