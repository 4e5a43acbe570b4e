"""Data that cannot be trained on: one line says why, whatever Keras says."""

from __future__ import annotations

import traceback
import warnings
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError
from stoker.train.first_look import CheckWarning

X = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
Y: Any = np.arange(64) % 3
HOLED = np.where(np.arange(64)[:, None] == 9, np.nan, X).astype("float32")


def model(loss: Any = "sparse_categorical_crossentropy", outputs: int = 3) -> Any:
    activation = "softmax" if outputs > 1 else None
    made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(outputs, activation=activation)])
    made.compile("sgd", loss)
    return made


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (X, np.array(["cat", "dog"] * 32), "labels are text, such as 'cat'"),
        (X, np.array(["cat", "dog"] * 32, object), "labels are text, such as 'cat'"),
        (X, Y + 1, "labels run from 1 to 3, the model's 3 classes from 0 to 2: subtract 1"),
        (X, Y - 1, "number the classes from 0"),
        (tf.data.Dataset.from_tensor_slices((X, Y + 1)).batch(8), None, "labels run from 1 to 3"),
        (X[:, :3], Y, r"a row of x has the shape \(3,\), and the model takes \(4,\)"),
        (X.astype(object), Y, "x holds object, such as .*, and the model takes float32"),
        (X.astype(str), Y, "x holds text, such as '[-0-9.]+', and the model takes float32"),
        (X, list(np.where(Y > 0, "yes", "no")), r"y is a list of values: give np.array\(y\)"),
        (list(X[:, 0].astype(str)), Y, r"x is a list of values: give np.array\(x\)"),
        (list(X[:, 0]), Y, r"x is a list of values: give np.array\(x\)"),
        (X.tolist(), Y.tolist(), r"x is a list of values: give np.array\(x\); y is a list of values"),
    ],
)
def test_an_error_of_the_data_is_one_line(x: Any, y: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said) as caught:
        stoker.fit(model(), x, y, verbose=0)
    shown = "".join(traceback.format_exception(caught.value))
    assert "\n" not in str(caught.value)
    assert shown.count('File "') == 1, shown


def test_missing_values_are_said_at_the_line_of_the_call() -> None:
    with pytest.warns(CheckWarning, match="x has missing or infinite values") as caught:
        stoker.fit(model(), HOLED, Y, verbose=0)
    (warning,) = caught
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("y", "rate", "said"),
    [
        (np.where(Y == 1, np.nan, 1.0), 0.01, "the loss is NaN at step .*: labels are missing or infinite"),
        (X.sum(1), 1e30, "the loss is NaN at step .*: lower the learning rate, or .*clipnorm"),
    ],
)
def test_a_loss_that_turns_nan_is_explained_once(y: Any, rate: float, said: str) -> None:
    made = model("mse", 1)
    made.optimizer.learning_rate = rate
    with pytest.warns(CheckWarning, match=said) as caught:
        stoker.fit(made, X, y, epochs=20, verbose=0)
    (warning,) = [one for one in caught if issubclass(one.category, CheckWarning)]
    assert warning.filename == __file__


class FilledIn(keras.layers.Layer):
    def call(self, inputs: Any) -> Any:
        return tf.where(tf.math.is_nan(inputs), 0.0, inputs)


class OwnStep(keras.Model):
    """Its step looks up what the labels stand for."""

    def __init__(self) -> None:
        super().__init__()
        self.last = keras.layers.Dense(1)

    def call(self, inputs: Any) -> Any:
        return self.last(inputs)

    def train_step(self, data: Any) -> Any:
        x, y = data
        return super().train_step((x, tf.cast(tf.strings.length(y), tf.float32)))


def ignoring() -> Any:
    return model(keras.losses.SparseCategoricalCrossentropy(ignore_class=-1))


def filling() -> Any:
    made = keras.Sequential([keras.Input((4,)), FilledIn(), keras.layers.Dense(3, activation="softmax")])
    made.compile("sgd", "sparse_categorical_crossentropy")
    return made


def with_own_step() -> Any:
    made = OwnStep()
    made.compile("sgd", "mse")
    return made


@pytest.mark.parametrize(
    ("make", "x", "y"),
    [
        (ignoring, X, np.where(Y == 1, -1, Y)),
        (filling, HOLED, Y),
        (with_own_step, X, np.array(["a", "bbb"] * 32, object)),
    ],
)
def test_what_a_model_takes_care_of_itself_is_left_alone(make: Any, x: Any, y: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckWarning)
        history = stoker.fit(make(), x, y, verbose=0)
    assert np.isfinite(history.history["loss"]).all()


class Broken(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        raise ValueError("of the program's own")


def test_an_error_of_the_program_stays_its_own() -> None:
    with (
        pytest.warns(CheckWarning, match="missing"),
        pytest.raises(ValueError, match=r"^of the program's own$"),
    ):
        stoker.fit(model(), HOLED, Y, callbacks=[Broken()], verbose=0)
