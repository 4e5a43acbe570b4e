"""Two losses whose scales differ by a thousand, weighed in three ways.

python examples/trainer/several_losses.py
"""

import keras
import numpy as np

import stoker

random = np.random.default_rng(0)
x = random.normal(size=(2048, 8)).astype("float32")
price = 1000 * (x @ random.normal(size=(8, 1))).astype("float32")
kind = (x[:, :1] * x[:, 1:2] > 0).astype("float32")


def build():
    keras.utils.set_random_seed(1)
    inputs = keras.Input((8,))
    shared = keras.layers.Dense(64, activation="relu")(inputs)
    return keras.Model(
        inputs, [keras.layers.Dense(1)(shared), keras.layers.Dense(1, activation="sigmoid")(shared)]
    )


def step(model, batch, training):
    x, (price, kind) = batch
    priced, sorted_ = model(x, training=training)
    losses = {
        "price": keras.losses.mean_absolute_error(price, 1000 * priced),
        "kind": keras.losses.binary_crossentropy(kind, sorted_),
    }
    return losses, {"accuracy": keras.metrics.binary_accuracy(kind, sorted_)}


ways = {
    "both with weight 1": {},
    "fixed weights": {"losses": {"price": 0.001, "kind": 1.0}},
    # The optimizer also trains the numbers that weigh the losses: here they get their own rate.
    "by uncertainty": {"losses": {"price": "auto", "kind": "auto"}, "rates": {"balance/*": 0.1}},
    "by gradients' norms": {"losses": stoker.Balance("gradients")},
}
for name, options in ways.items():
    trainer = stoker.Trainer(build(), keras.optimizers.Adam(0.01), step, **options)
    history = trainer.fit(x, (price, kind), batch_size=64, epochs=10, verbose=0).history
    print(f"{name:<20} price off by {history['price'][-1]:6.1f}, kind right {history['accuracy'][-1]:.1%}")
