"""A rate per layer by name pattern, one of them a schedule; the encoder is frozen for the first 100 updates.

python examples/trainer/rates_and_freezing.py
"""

import keras
import numpy as np

import stoker

random = np.random.default_rng(0)
x = random.normal(size=(1024, 16)).astype("float32")
y = np.tanh(x @ random.normal(size=(16, 1))).astype("float32")

keras.utils.set_random_seed(1)
encoder = keras.Sequential(
    [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(16)], name="encoder"
)
inputs = keras.Input((16,))
model = keras.Model(inputs, keras.layers.Dense(1, name="head")(encoder(inputs)))


def step(model, batch):
    x, y = batch
    return keras.losses.mean_squared_error(y, model(x, training=True))


trainer = stoker.Trainer(
    model,
    keras.optimizers.Adam(1e-2),
    step,
    rates={
        "encoder/*": stoker.Times(0.1),  # a tenth of the optimizer's rate
        "head/kernel": keras.optimizers.schedules.CosineDecay(2e-2, decay_steps=320),
        "bias": 5e-3,
    },
    freeze={"encoder": 100},
)


class Moved(keras.callbacks.Callback):
    """How far the encoder has come, after each epoch of 32 updates."""

    def on_train_begin(self, logs=None):
        self.start = encoder.get_weights()

    def on_epoch_end(self, epoch, logs=None):
        way = sum(
            np.abs(now - then).sum() for now, then in zip(encoder.get_weights(), self.start, strict=True)
        )
        print(f"update {32 * (epoch + 1):>3}: loss {logs['loss']:.4f}, the encoder moved by {way:.3f}")


trainer.fit(x, y, batch_size=32, epochs=6, verbose=0, callbacks=[Moved()])
