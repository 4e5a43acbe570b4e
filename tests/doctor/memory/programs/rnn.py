import keras
import numpy as np

x = np.random.default_rng(0).integers(0, 1000, (512, 40))
y = np.zeros(512, "int64")
model = keras.Sequential(
    [
        keras.layers.Embedding(1000, 64),
        keras.layers.LSTM(64, return_sequences=True),
        keras.layers.GRU(32),
        keras.layers.Dense(1),
    ]
)
model.compile("rmsprop", keras.losses.BinaryCrossentropy(from_logits=True))
model.fit(x, y, batch_size=64, epochs=5, verbose=0)
