import numpy as np
from tensorflow import keras

model = keras.models.load_model("digits.keras")
scores = model.predict(np.stack(images), batch_size=256)
labels = scores.argmax(axis=1)
