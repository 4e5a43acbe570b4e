"""A small study of three learning rates: every run is in the store, and so is the origin of the best model.

python examples/store/study.py
stoker runs --where 'kind = train' --sort val_loss
stoker audit --verify
"""

from __future__ import annotations

import keras
import numpy as np

import stoker


def trained(rate: float, x: np.ndarray, y: np.ndarray) -> tuple[keras.Model, float]:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(rate), "mse")
    history = stoker.fit(model, x, y, epochs=5, validation_split=0.2, verbose=0)
    return model, history.history["val_loss"][-1]


def main() -> None:
    x = np.random.default_rng(1).normal(size=(2000, 20)).astype("float32")
    y = np.tanh(x[:, :1]) + x[:, 1:2]
    with stoker.track("learning rates") as study:
        results = []
        for number, rate in enumerate((0.001, 0.01, 0.1)):
            model, loss = trained(rate, x, y)
            study.log(number, rate=rate, val_loss=loss)
            results.append((loss, rate, model))
        loss, rate, model = min(results, key=lambda result: result[0])
        study.params(best_rate=rate)
        model.save("best.keras")
        study.artifact("best.keras", kind="model")
    study.flush()
    for run in stoker.runs(f"parent = {study.id}", sort="val_loss"):
        print(f"{run['id']}  rate {run['params.learning_rate']:.3f}  val_loss {run['metrics.val_loss']:.4f}")
    print(f"best rate: {rate}")


if __name__ == "__main__":
    main()
