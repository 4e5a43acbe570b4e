"""`stoker.fit` and Keras on datasets that a strategy has distributed; prints what each case came to, as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

import stoker

(CPU,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(CPU, [tf.config.LogicalDeviceConfiguration()] * 2)
ONE = tf.distribute.MirroredStrategy(["CPU:0"])
TWO = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
ROWS, BATCH = 24, 8
X = np.random.default_rng(7).normal(size=(ROWS, 3)).astype("float32")
Y = (X.sum(1, keepdims=True) + np.arange(ROWS)[:, None] % 5).astype("float32")


def untuned(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Without tf.data's tuner, which every iterator would wait for when it goes."""
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def whole() -> tf.data.Dataset:
    return untuned(tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH))


def from_whole(strategy: Any) -> Any:
    return strategy.experimental_distribute_dataset(whole())


def from_function(strategy: Any) -> Any:
    def rows(context: Any) -> tf.data.Dataset:
        # TensorFlow counts these as the steps: twice as many as there are on two replicas.
        size = context.get_per_replica_batch_size(BATCH)
        return untuned(tf.data.Dataset.from_tensor_slices((X, Y)).batch(size))

    return strategy.distribute_datasets_from_function(rows)


def of_unknown_length(strategy: Any) -> Any:
    signature = (tf.TensorSpec([3]), tf.TensorSpec([1]))
    rows = tf.data.Dataset.from_generator(lambda: zip(X, Y, strict=True), output_signature=signature)
    return strategy.experimental_distribute_dataset(untuned(rows.batch(BATCH)))


def compiled(strategy: Any) -> Any:
    keras.utils.set_random_seed(3)
    layers = [keras.Input((3,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)]
    with strategy.scope():
        model = keras.Sequential(layers)
        # The count of steps has no part in it: of data of unknown length Keras counts one too many.
        model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "mse", metrics=["mae"])
    return model


def values(model: Any) -> list[Any]:
    return [weight.numpy().tolist() for weight in model.weights]


def averages(optimizer: Any) -> list[Any]:
    return [variable.numpy().tolist() for variable in optimizer._model_variables_moving_average]


def trained(strategy: Any, make: Callable[[Any], Any], ours: bool) -> dict[str, Any]:
    model = compiled(strategy)
    options: dict[str, Any] = {"epochs": 2, "verbose": 0, "shuffle": False}
    if make is from_whole:
        options["validation_data"] = make(strategy)
    data = make(strategy)
    history = stoker.fit(model, data, **options) if ours else model.fit(data, **options)
    return {
        "history": history.history,
        "weights": values(model),
        "steps": int(model.optimizer.iterations.numpy()),
        "told": history.params["steps"],
    }


def scored(ours: bool) -> Any:
    """Evaluated and predicted from distributed datasets; one of the models was made under no strategy."""
    model, found = compiled(tf.distribute.get_strategy()), []
    for strategy, given in ((ONE, model), (TWO, compiled(TWO))):
        inputs = strategy.experimental_distribute_dataset(whole().map(lambda x, _: x))
        if ours:
            found.append(stoker.evaluate(given, from_whole(strategy), verbose=0))
            found.append(stoker.predict(given, inputs, verbose=0).tolist())
        else:
            found.append(given.evaluate(from_whole(strategy), verbose=0))
            found.append(given.predict(inputs, verbose=0).tolist())
    return found


def averaged(ours: bool) -> dict[str, Any]:
    """`use_ema`, swapped into the model for each validation and at the end of each epoch.

    On two replicas, against Keras on one device: on several it cannot overwrite the weights while it trains.
    """
    keras.utils.set_random_seed(3)
    with TWO.scope() if ours else contextlib.nullcontext():
        layers = [
            keras.layers.Dense(4, activation="tanh"),
            keras.layers.Dense(1, kernel_constraint="non_neg"),
        ]
        model = keras.Sequential([keras.Input((3,)), *layers])
        options: dict[str, Any] = {"use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": 4}
        model.compile(keras.optimizers.SGD(0.05, **options), "mse")
        swap = keras.callbacks.SwapEMAWeights(swap_on_epoch=True)
        fitting: dict[str, Any] = {"epochs": 2, "batch_size": BATCH, "shuffle": False, "verbose": 0}
        fitting["callbacks"] = [swap]
        fitting["validation_data"] = (X, Y)
        history = stoker.fit(model, X, Y, **fitting) if ours else model.fit(X, Y, **fitting)
    return {"history": history.history, "weights": values(model), "averages": averages(model.optimizer)}


def by_trainer() -> dict[str, Any]:
    """A Trainer's step on two replicas, given rows apart and given them together."""

    def loss(net: Any, batch: Any, training: bool = True) -> Any:
        return tf.reduce_mean(tf.square(batch[1] - net(batch[0], training=training)))

    found = {}
    for name, data in (("apart", from_whole(TWO)), ("together", whole())):
        model = compiled(TWO)
        trainer = stoker.Trainer(model, model.optimizer, loss)
        trainer.fit(data, epochs=2, verbose=0)
        found[name] = {"weights": values(model), "loss": trainer.evaluate(data)["loss"]}
    return found


def refused(call: Callable[[], Any]) -> str:
    try:
        call()
    except ValueError as error:
        return str(error)
    return ""


def main() -> None:
    warnings.simplefilter("ignore")
    cases = {
        "not distributed, 1": (ONE, lambda _: whole()),
        "whole, 1": (ONE, from_whole),
        "function, 1": (ONE, from_function),
        "whole, 2": (TWO, from_whole),
        "function, 2": (TWO, from_function),
        "unknown length, 2": (TWO, of_unknown_length),
    }
    model = compiled(TWO)
    found = {
        "fit": {name: [trained(*case, ours) for ours in (False, True)] for name, case in cases.items()},
        "scored": [scored(ours) for ours in (False, True)],
        "averaged": [averaged(ours) for ours in (False, True)],
        "trainer": by_trainer(),
        "refused": {
            "replicas": refused(lambda: stoker.fit(compiled(ONE), from_whole(TWO), verbose=0)),
            "class_weight": refused(
                lambda: stoker.fit(model, from_whole(TWO), class_weight={0: 1.0}, verbose=0)
            ),
            "checkpoint": refused(lambda: stoker.fit(model, from_whole(TWO), checkpoint="saved", verbose=0)),
        },
    }
    print(json.dumps(found))
    sys.stdout.flush()
    # TensorFlow takes seconds to leave.
    os._exit(0)


if __name__ == "__main__":
    main()
