"""The Keras models, rows and callbacks that a random `Case` describes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.train.random_models import Case, Spec
from tests.train.random_names import CHANNELS, CLASSES, MERGES, NEEDED, SHAPES, WORDS


class EveryBatch(keras.callbacks.Callback):
    """Writes down the logs of every batch."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.seen.append((batch, dict(logs or {})))


def build(case: Case) -> Any:
    """The model, compiled."""
    keras.utils.set_random_seed(case.seed)
    keras.config.set_dtype_policy(case.policy)
    try:
        model = _functional(case) if case.functional else _sequential(case)
    finally:
        keras.config.set_dtype_policy("float32")
    trained = [layer for layer in model.layers if layer.trainable_weights]
    if case.frozen and len(trained) > 1:
        trained[0].trainable = False
    names = ["first", "second"] if case.second_output else None
    model.compile(
        optimizer=_optimizer(case.optimizer),
        loss=dict.fromkeys(names, case.loss) if names else case.loss,
        metrics=_per_output(names, case.metrics),
        weighted_metrics=_per_output(names, case.weighted_metrics),
        steps_per_execution=case.steps_per_execution,
    )
    return model


def _per_output(names: list[str] | None, metrics: tuple[str, ...]) -> Any:
    """New metrics, for every output."""
    if names is None:
        return [_metric(name) for name in metrics]
    return {name: [_metric(metric) for metric in metrics] for name in names}


def _metric(name: str) -> Any:
    return name if name[0].islower() else getattr(keras.metrics, name)(**NEEDED.get(name, {}))


def _optimizer(spec: Spec) -> Any:
    name, options = spec[0], dict(spec[1])
    if options.get("learning_rate") == "decay":
        options["learning_rate"] = keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.5)
    return getattr(keras.optimizers, name)(**options)


def _input(case: Case) -> Any:
    return keras.Input((6,), dtype="int32") if case.words else keras.Input(SHAPES[case.rank])


def _start(case: Case) -> list[Any]:
    return [keras.layers.Embedding(WORDS, CHANNELS, mask_zero=case.seed % 2 == 1)] if case.words else []


def _sequential(case: Case) -> Any:
    layers = [_layer(spec) for spec in case.layers]
    return keras.Sequential([_input(case), *_start(case), *layers, keras.layers.Flatten(), _head(case, None)])


def _functional(case: Case) -> Any:
    given = [_input(case)]
    x = given[0]
    for layer in _start(case):
        x = layer(x)
    for spec in case.layers:
        x = _applied(spec, x)
    x = keras.layers.Flatten()(x)
    if case.second_input:
        given.append(keras.Input((2,)))
        x = keras.layers.Concatenate()([x, keras.layers.Dense(2)(given[1])])
    names = ["first", "second"] if case.second_output else [None]
    outputs = [_head(case, name)(x) for name in names]
    return keras.Model(given, dict(zip(names, outputs, strict=True)) if case.second_output else outputs[0])


def _applied(spec: Spec, x: Any) -> Any:
    if spec[0] in MERGES:
        return _layer(spec)([x, keras.layers.Dense(x.shape[-1], activation="tanh")(x)])
    if spec[0] == "MultiHeadAttention":
        return keras.layers.MultiHeadAttention(2, 3)(x, x)
    if spec[0] == "Attention":
        return keras.layers.Attention(use_scale=True)([x, x])
    return _layer(spec)(x)


def _layer(spec: Spec) -> Any:
    name, options = spec
    if name == "Bidirectional":
        return keras.layers.Bidirectional(keras.layers.GRU(2))
    if name == "TimeDistributed":
        return keras.layers.TimeDistributed(keras.layers.Dense(CHANNELS, activation="relu"))
    if name == "SpectralNormalization":
        return keras.layers.SpectralNormalization(keras.layers.Dense(CHANNELS))
    if name == "AveragePooling2D":
        return keras.layers.AveragePooling2D(2, **dict(options))
    if name == "AveragePooling3D":
        return keras.layers.AveragePooling3D(2, **dict(options))
    return getattr(keras.layers, name)(**dict(options))


def _head(case: Case, name: str | None) -> Any:
    units, activation = {
        "numbers": (2, "softplus"),
        "two": (1, "sigmoid"),
        "one-hot": (CLASSES, "softmax"),
        "classes": (CLASSES, "softmax"),
    }[case.target]
    return keras.layers.Dense(units, activation=activation, name=name)


def arrays(case: Case) -> tuple[Any, Any, Any]:
    """Rows, what they are to give, and their weights."""
    draw = np.random.default_rng(case.seed)
    rows = case.rows
    x: Any = draw.integers(0, WORDS, (rows, 6)) if case.words else _normal(draw, (rows, *SHAPES[case.rank]))
    if case.second_input:
        x = [x, _normal(draw, (rows, 2))]
    classes = draw.integers(0, 2 if case.target == "two" else CLASSES, rows)
    targets: dict[str, Callable[[], Any]] = {
        "numbers": lambda: np.abs(_normal(draw, (rows, 2))),
        "two": lambda: classes[:, None].astype("float32"),
        "one-hot": lambda: np.eye(CLASSES, dtype="float32")[classes],
        "classes": lambda: classes,
    }
    y = targets[case.target]()
    weights: Any = draw.uniform(0.0, 2.0, rows).astype("float32")
    if case.second_output:
        y, weights = ({"first": one, "second": one[::-1].copy()} for one in (y, weights))
    return x, y, weights


def _normal(draw: Any, shape: tuple[int, ...]) -> Any:
    return draw.normal(size=shape).astype("float32")


def arguments(case: Case) -> tuple[dict[str, Any], list[Any]]:
    """What `fit` is called with, and the callbacks among it."""
    x, y, weights = arrays(case)
    callbacks = [_callback(spec) for spec in case.callbacks]
    call: dict[str, Any] = {"epochs": case.epochs, "callbacks": callbacks, "verbose": 0}
    if case.feed == "dataset":
        elements = (_tupled(x), y, weights) if case.weights == "sample" else (_tupled(x), y)
        call["x"] = tf.data.Dataset.from_tensor_slices(elements).batch(case.batch_size)
    else:
        call |= {"x": x, "y": y, "batch_size": case.batch_size, "shuffle": False}
        call |= {"sample_weight": weights} if case.weights == "sample" else {}
    if case.weights == "class":
        call["class_weight"] = {number: 0.5 + number for number in range(CLASSES)}
    if case.validation == "split" and case.feed == "arrays":
        call["validation_split"] = 0.3
    elif case.validation != "none":
        held_out = arrays(case)
        call["validation_data"] = held_out if case.validation == "weighted" else held_out[:2]
    if case.validation != "none":
        call["validation_freq"] = case.validation_freq
    return call, callbacks


def _tupled(x: Any) -> Any:
    return tuple(x) if isinstance(x, list) else x


def _callback(spec: Spec) -> Any:
    name, options = spec
    if name == "EveryBatch":
        return EveryBatch()
    if name == "LearningRateScheduler":
        return keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5)
    return getattr(keras.callbacks, name)(**dict(options))
