import keras
import numpy as np

x = np.random.default_rng(0).random((8192, 64), dtype="float32")
y = np.zeros(8192, "int64")
model = keras.Sequential(
    [
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(10),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, batch_size=8192, verbose=0)
