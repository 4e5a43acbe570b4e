"""A run whose rate becomes too high. It returns to the checkpoint before the spike and continues with a lower rate.

python examples/trainer/spike_recovery.py
"""

import tempfile

import keras
import numpy as np

import stoker

random = np.random.default_rng(0)
x = random.normal(size=(4096, 16)).astype("float32")
y = (x @ random.normal(size=(16, 1)) + random.normal(size=(4096, 1))).astype("float32")


def step(model, batch):
    x, y = batch
    return keras.losses.mean_squared_error(y, model(x, training=True))


def build():
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input((16,)), keras.layers.Dense(1)])


# A good rate for 100 steps, then one that is far too high.
rate = keras.optimizers.schedules.PiecewiseConstantDecay([100], [0.02, 1.2])

print("With on_spike:")
trainer = stoker.Trainer(
    build(), keras.optimizers.SGD(rate), step, on_spike=stoker.Spike(factor=4, warmup=50, rate=0.3)
)
with tempfile.TemporaryDirectory() as directory:
    checkpoint = stoker.Checkpoint(directory, every=16)
    history = trainer.fit(x, y, batch_size=32, epochs=2, verbose=2, checkpoint=checkpoint)
print("history.events:", *history.events, sep="\n  ")

print("Without it, the run ends where the loss is no number any more:")
trainer = stoker.Trainer(build(), keras.optimizers.SGD(rate), step)
trainer.fit(x, y, batch_size=32, epochs=2, verbose=2)
