"""Evaluation every 50 steps of a long epoch, without disturbing the epoch's own means.

python examples/trainer/evaluate_every.py
"""

import keras
import numpy as np

import stoker

random = np.random.default_rng(0)
x = random.normal(size=(8192, 16)).astype("float32")
y = np.sin(x[:, :1] + x[:, 1:2]).astype("float32")


def step(model, batch, training):
    x, y = batch
    guess = model(x, training=training)
    return keras.losses.mean_squared_error(y, guess), {"mae": keras.losses.mean_absolute_error(y, guess)}


keras.utils.set_random_seed(1)
layers = keras.layers
model = keras.Sequential(
    [keras.Input((16,)), layers.Dense(64, activation="relu"), layers.Dropout(0.1), layers.Dense(1)]
)
trainer = stoker.Trainer(model, keras.optimizers.Adam(0.01), step)
history = trainer.fit(
    x[1024:], y[1024:], batch_size=32, verbose=0, validation_data=(x[:1024], y[:1024]), evaluate_every=50
)
for found in history.evaluations:
    print(f"step {found['step']:>3}: loss {found['loss']:.4f}, mae {found['mae']:.4f}")
