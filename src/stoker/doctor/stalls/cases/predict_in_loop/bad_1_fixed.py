import numpy as np
from tensorflow import keras

model = keras.models.load_model("digits.keras")
for image in images:
    scores = model.predict_on_batch(image[np.newaxis])
    labels.append(scores.argmax())
