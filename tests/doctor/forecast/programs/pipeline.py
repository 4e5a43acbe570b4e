import keras
import numpy as np
import tensorflow as tf

WINDOW = 4
BATCH = 64
rows = np.random.default_rng(0).random((4096, 64), dtype="float32")
# Not every Dataset.batch sets the batch: this one makes windows of rows.
windows = tf.data.Dataset.from_tensor_slices(rows).batch(WINDOW, drop_remainder=True)
pairs = windows.map(lambda window: (window, tf.reduce_sum(window)))
model = keras.Sequential(
    [
        keras.layers.Flatten(),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile("adam", "mse")
model.fit(pairs.shuffle(64).batch(BATCH).prefetch(1), epochs=2, verbose=0)
