"""From a CSV file to a trained model: columns of every kind, held-out rows, a full shuffle each epoch."""

import csv
import random
import tempfile
from pathlib import Path

import keras

import stoker

random.seed(0)
path = Path(tempfile.mkdtemp(), "houses.csv")
with path.open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["area", "rooms", "town", "built", "price"])
    for _ in range(5000):
        area, rooms = random.uniform(30, 200), random.randint(1, 7)
        town = random.choice(["Ulm", "Bonn", "Kiel"])
        price = area * {"Ulm": 3.0, "Bonn": 4.0, "Kiel": 3.5}[town] + 20 * rooms + random.gauss(0, 5)
        writer.writerow([f"{area:.1f}", rooms, town, f"{random.randint(1950, 2020)}-06-01", f"{price:.2f}"])

train, held_out = stoker.data.csv(
    path, label="price", batch_size=256, shuffle=True, seed=7, validation_split=0.1, cache=path.parent
)
print(train.features)
inputs = train.features.inputs()
x = keras.layers.Dense(32, activation="relu")(train.features.encode(inputs))
model = keras.Model(inputs, keras.layers.Dense(1)(x))
model.compile(keras.optimizers.Adam(0.05), "mse")
history = stoker.fit(model, train, validation_data=held_out, epochs=10, verbose=0)
print(f"{train.rows} rows; held-out error {history.history['val_loss'][-1] ** 0.5:.1f}")
