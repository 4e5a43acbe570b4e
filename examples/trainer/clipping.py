"""Gradient clipping: a regression with a few wild targets, with and without a limit on the gradients' global norm.

python examples/trainer/clipping.py
"""

import keras
import numpy as np

import stoker

random = np.random.default_rng(0)
x = random.normal(size=(2048, 8)).astype("float32")
y = (x @ random.normal(size=(8, 1))).astype("float32")
y[::97] *= 300  # a few targets are nonsense


def step(model, batch):
    x, y = batch
    return keras.losses.mean_squared_error(y, model(x, training=True))


for clip in (None, stoker.Clip(value=0.5), stoker.Clip(norm=1.0), stoker.Clip(global_norm=1.0)):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    trainer = stoker.Trainer(model, keras.optimizers.SGD(0.05), step, clip=clip)
    trainer.fit(x, y, batch_size=32, epochs=5, verbose=0)
    typical = np.median(np.abs(y - stoker.predict(model, x, verbose=0)))
    print(f"{clip or 'no clipping'!s:<55} typical error {typical:.3f}")
