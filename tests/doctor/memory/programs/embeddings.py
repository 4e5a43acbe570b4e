import keras
import numpy as np

x = np.random.default_rng(0).integers(0, 20000, (2048, 8))
y = np.zeros(2048, "float32")
model = keras.Sequential(
    [
        keras.layers.Embedding(20000, 32),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile("adagrad", "mse")
model.fit(x, y, batch_size=128, epochs=4, verbose=0)
