"""The moving average of the weights, for evaluation and export; training continues with the weights themselves.

python examples/trainer/averaged_weights.py
"""

import keras
import numpy as np

import stoker

random = np.random.default_rng(0)
x = random.normal(size=(2048, 16)).astype("float32")
truth = random.normal(size=(16, 1))
y = (x @ truth + random.normal(size=(2048, 1))).astype("float32")  # as much noise as signal
clean_x = random.normal(size=(2048, 16)).astype("float32")
clean = clean_x, (clean_x @ truth).astype("float32")


def step(model, batch, training):
    x, y = batch
    return keras.losses.mean_squared_error(y, model(x, training=training))


keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(1)])
trainer = stoker.Trainer(model, keras.optimizers.SGD(0.05), step, ema=stoker.EMA(0.99, warmup=True))
history = trainer.fit(x, y, batch_size=16, epochs=10, validation_data=clean, verbose=0)

error = np.mean((clean[1] - model(clean[0]).numpy()) ** 2)
print(f"the last weights:     error {error:.4f}")
with trainer.averaged_weights():
    # Save or export the model here: model.export("served") takes the averaged weights.
    averaged = np.mean((clean[1] - model(clean[0]).numpy()) ** 2)
print(f"the averaged weights: error {averaged:.4f} (val_loss says {history.history['val_loss'][-1]:.4f})")
