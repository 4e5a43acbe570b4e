import numpy as np
from tensorflow import keras

model = keras.models.load_model("digits.keras")
for image in images:
    # It takes an array and returns one.
    scores = model.predict_on_batch(np.asarray(image)[np.newaxis])
    labels.append(scores.argmax())
