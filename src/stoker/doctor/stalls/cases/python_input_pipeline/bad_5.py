import numpy as np
from tensorflow import keras

def batches(x, y):
    while True:
        for i in range(0, len(x), 50):
            rows = np.stack([(row - row.mean()) / row.std() for row in x[i : i + 50]])
            yield rows, y[i : i + 50]

model = keras.Sequential([keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(batches(x_train, y_train), steps_per_epoch=100, epochs=3)  #!
