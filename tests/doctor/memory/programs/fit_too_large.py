import keras
import numpy as np

import stoker

x = np.random.default_rng(0).random((8192, 64), dtype="float32")
y = np.zeros(8192, "int64")
stoker.software_gpu.enable(memory="96MiB")
model = keras.Sequential(
    [
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(10),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
stoker.fit(model, x, y, batch_size=8192, verbose=0)
