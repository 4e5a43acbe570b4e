import keras
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
with strategy.scope():
    layers = [keras.layers.Dense(512, activation="relu"), keras.layers.Dense(512), keras.layers.Dense(10)]
    model = keras.Sequential(layers)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x = np.random.default_rng(0).random((1024, 256), dtype="float32")
y = np.zeros(1024, "int64")
model.fit(x, y, batch_size=128, epochs=8, verbose=0)
