"""Gradient accumulation: batches of 64 that train like batches of 256.

python examples/trainer/accumulation.py
"""

import keras
import numpy as np

import stoker

random = np.random.default_rng(0)
x = random.normal(size=(1000, 8)).astype("float32")  # the last batch of an epoch is short
y = np.sin(x.sum(axis=1, keepdims=True)).astype("float32")


def step(model, batch):
    x, y = batch
    return keras.losses.mean_squared_error(y, model(x, training=True))


def train(batch_size, accumulate):
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((8,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)]
    )
    optimizer = keras.optimizers.Adam(0.01)
    trainer = stoker.Trainer(model, optimizer, step, accumulate=accumulate, clip=stoker.Clip(global_norm=0.5))
    history = trainer.fit(x, y, batch_size=batch_size, epochs=10, shuffle=False, verbose=0)
    print(
        f"batches of {batch_size:>3}, {accumulate} an update: {int(optimizer.iterations)} updates, "
        f"loss {history.history['loss'][-1]:.6f}"
    )
    return model.get_weights()


large, small = train(256, 1), train(64, 4)
apart = max(np.abs(one - other).max() for one, other in zip(large, small, strict=True))
print(f"the weights differ by {apart:.1e} at most")
