"""Trains with the weights on a parameter server; `DIRECTORY/begun` says how many epochs are over. Prints JSON.

served.py DIRECTORY [EPOCHS]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np

import stoker

ROWS, BATCH, EPOCHS = 1003, 10, 6


def compiled(strategy: Any, metrics: Any = None) -> Any:
    keras.utils.set_random_seed(5)
    with strategy.scope():
        layers = keras.layers
        model = keras.Sequential([keras.Input((4,)), layers.Dense(16, activation="tanh"), layers.Dense(1)])
        model.compile(keras.optimizers.Adam(0.01), "mse", metrics=metrics)
    return model


def main() -> None:
    directory, epochs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else EPOCHS
    strategy = stoker.strategy()
    x = np.random.default_rng(1).normal(size=(ROWS, 4)).astype("float32")
    y = x.sum(1, keepdims=True)
    model = compiled(strategy)
    begun = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: (directory / "begun").write_text(str(epoch + 1))
    )
    history = stoker.fit(
        model,
        x,
        y,
        batch_size=BATCH,
        epochs=epochs,
        verbose=0,
        validation_data=(x, y),
        callbacks=[begun],
    )
    refused = []
    for wrong in (
        lambda: stoker.fit(compiled(strategy, ["mae"]), x, y),
        lambda: stoker.fit(model, x, y, checkpoint=directory / "run"),
        lambda: stoker.Trainer(model, model.optimizer, lambda net, batch: 0.0),
    ):
        try:
            wrong()
        except ValueError as error:
            refused.append(str(error))
    found = {
        "steps": history.steps,
        "iterations": int(model.optimizer.iterations.numpy()),
        "history": history.history,
        "refused": refused,
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
