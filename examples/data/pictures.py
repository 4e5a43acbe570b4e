"""A folder of images for each class. They stay bytes until the model casts and scales them."""

import tempfile
from pathlib import Path

import keras
import numpy as np

import stoker

root = Path(tempfile.mkdtemp())
for number in range(60):
    (root / "photos" / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(number).integers(0, 128 + 127 * (number % 2), (24, 24, 3))
    keras.utils.save_img(root / "photos" / "ab"[number % 2] / f"{number}.png", pixels, scale=False)

train, held_out = stoker.data.images(
    root / "photos", batch_size=12, validation_split=0.2, augment=["flip"], cache=root / "cache"
)
model = keras.Sequential(
    [keras.layers.Rescaling(1 / 255), keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(2)]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.1), loss, metrics=["accuracy"])
history = stoker.fit(model, train, validation_data=held_out, epochs=20, verbose=0)
print(train.class_names, train.rows, f"accuracy {history.history['val_accuracy'][-1]:.2f}")
