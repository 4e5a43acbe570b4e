import numpy as np
from tensorflow import keras

lookup = keras.layers.StringLookup(vocabulary=["cat", "dog"], num_oov_indices=0)
labels = lookup(np.array(["cat", "dog", "cat"]))
model = keras.Sequential([keras.layers.Dense(2, activation="softmax")])
model.fit(images, labels, epochs=5)
