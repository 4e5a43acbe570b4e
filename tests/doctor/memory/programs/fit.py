import keras
import numpy as np

x = np.random.default_rng(0).random((1024, 32, 32, 3), dtype="float32")
y = np.zeros(1024, "int64")
model = keras.Sequential(
    [
        keras.layers.Conv2D(32, 3, activation="relu", padding="same"),
        keras.layers.Conv2D(32, 3, activation="relu", padding="same"),
        keras.layers.Flatten(),
        keras.layers.Dense(64),
        keras.layers.Dense(10),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, batch_size=64, epochs=3, verbose=0)
