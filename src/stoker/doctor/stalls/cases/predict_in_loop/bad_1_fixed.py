import numpy as np
from tensorflow import keras

model = keras.models.load_model("digits.keras")
for image in images:
    scores = model(image[np.newaxis], training=False).numpy()
    labels.append(scores.argmax())
