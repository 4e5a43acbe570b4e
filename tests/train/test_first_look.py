"""`stoker.fit(..., check=True)`: what would train in vain is said before the first step."""

from __future__ import annotations

import warnings
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError
from stoker.train import first_look

_RANDOM = np.random.default_rng(0)
X = _RANDOM.normal(size=(60, 4)).astype("float32")
Y: Any = np.arange(60) % 3


def model(loss: Any, outputs: int = 3, activation: str | None = "softmax", width: int = 4) -> keras.Model:
    made = keras.Sequential([keras.Input((width,)), keras.layers.Dense(outputs, activation=activation)])
    made.compile("sgd", loss)
    return made


def said(
    made: keras.Model, x: Any, y: Any = None, validated: bool = True, batch: int | None = None
) -> list[str]:
    return [one.line for one in first_look.find_faults(made, first_look.take_sample(x, y, batch), validated)]


@pytest.mark.parametrize(
    ("loss", "labels", "outputs", "part"),
    [
        (
            "sparse_categorical_crossentropy",
            np.array(["cat", "dog"] * 30),
            3,
            "labels are text, such as 'cat'",
        ),
        (
            "sparse_categorical_crossentropy",
            Y + 1,
            3,
            "labels run from 1 to 3, the model's 3 classes from 0 to 2: subtract 1",
        ),
        ("sparse_categorical_crossentropy", Y * 4, 3, "give the last layer 9 outputs"),
        ("sparse_categorical_crossentropy", np.eye(3)[Y], 3, "one-hot: use categorical_crossentropy"),
        ("sparse_categorical_crossentropy", X[:, 0], 3, "are not classes: use loss='mse'"),
        ("sparse_categorical_crossentropy", Y % 2, 1, "binary_crossentropy with a sigmoid"),
        ("sparse_categorical_crossentropy", Y - 1, 3, "for 0 to 2: number the classes from 0"),
        ("categorical_crossentropy", Y, 3, "use sparse_categorical_crossentropy"),
        ("categorical_crossentropy", np.eye(4)[Y], 3, "one-hot of 4 classes, and the model has 3 outputs"),
        ("binary_crossentropy", Y % 2, 1, "a softmax over one output"),
        ("binary_crossentropy", (Y % 2) * 2 - 1, 1, "labels run from -1 to 1"),
        ("mse", Y, 3, "use sparse_categorical_crossentropy"),
        ("mse", np.where(Y == 1, np.nan, 1.0), 1, "labels are missing"),
    ],
)
def test_labels_a_loss_cannot_take_are_raised(loss: str, labels: Any, outputs: int, part: str) -> None:
    made = model(loss, outputs)
    before = made.get_weights()
    with pytest.raises(ArgumentError, match=part.replace("'", ".")):
        stoker.fit(made, X, labels, validation_split=0.2, check=True, verbose=0)
    assert all(np.array_equal(a, b) for a, b in zip(before, made.get_weights(), strict=True))


@pytest.mark.parametrize(
    ("loss", "labels", "outputs", "activation"),
    [
        ("sparse_categorical_crossentropy", Y, 3, "softmax"),
        (keras.losses.SparseCategoricalCrossentropy(from_logits=True), Y, 3, None),
        ("categorical_crossentropy", np.eye(3)[Y], 3, "softmax"),
        ("binary_crossentropy", (Y % 2).astype("float32"), 1, "sigmoid"),
        ("mse", X[:, 1] ** 2, 1, None),
    ],
)
def test_what_fits_is_left_alone(loss: Any, labels: Any, outputs: int, activation: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", first_look.CheckWarning)
        stoker.fit(
            model(loss, outputs, activation), X, labels.astype(np.float32 if labels.dtype == float else labels.dtype),
            validation_split=0.2, check=True, verbose=0,
        )  # fmt: skip


def test_what_may_be_meant_is_a_warning_and_training_goes_on() -> None:
    with pytest.warns(first_look.CheckWarning, match="there is no validation data"):
        history = stoker.fit(model("sparse_categorical_crossentropy"), X, Y, check=True, verbose=0)
    assert len(history.history["loss"]) == 1


@pytest.mark.parametrize(
    ("loss", "outputs", "activation", "part"),
    [
        ("sparse_categorical_crossentropy", 3, None, "activation='softmax', or the loss from_logits=True"),
        ("binary_crossentropy", 1, None, "activation='sigmoid'"),
        (keras.losses.SparseCategoricalCrossentropy(from_logits=True), 3, "softmax", "leave one of the two"),
    ],
)
def test_what_is_no_probability_is_told(loss: Any, outputs: int, activation: str | None, part: str) -> None:
    assert any(part in line for line in said(model(loss, outputs, activation), X, Y % 2))


def test_inputs_are_looked_at() -> None:
    made = model("sparse_categorical_crossentropy")
    assert "put keras.layers.Normalization" in said(made, X * 300 + 500, Y)[0]
    assert "float64" in said(made, X.astype(float), Y)[0]
    assert "fill them in" in said(made, np.where(X > 1, np.nan, X), Y)[0]
    scaled = keras.Sequential([keras.Input((4,)), keras.layers.Rescaling(1 / 255), keras.layers.Dense(3)])
    scaled.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    assert said(scaled, X * 300 + 500, Y) == []


def test_columns_that_tell_nothing_or_too_much() -> None:
    made = model("mse", 1, None)
    constant = X.copy()
    constant[:, 2] = 7
    assert said(made, constant, X[:, 0] * X[:, 1]) == ["column 2 of x is 7 in every row: leave it out"]
    assert "column 3 of x gives the label away by itself" in said(made, X, X[:, 3] * 5 + 2)[0]


def test_classes_with_hardly_an_example() -> None:
    labels = Y.copy()
    labels[labels == 2] = 0
    labels[0] = 2
    assert "class 2 has 1 example:" in said(model("sparse_categorical_crossentropy"), X, labels)[0]


def test_a_batch_that_will_not_fit() -> None:
    made = model("mse", 1, None)
    found = said(made, X, X[:, 0] * X[:, 1], batch=1 << 44)
    assert len(found) == 1
    assert "use at most batch_size=" in found[0]


def test_a_dataset_is_looked_at_by_its_first_batches() -> None:
    data = tf.data.Dataset.from_tensor_slices(({"a": X[:, 0], "b": X[:, 1]}, Y + 1)).batch(10)
    inputs = {name: keras.Input((1,), name=name) for name in "ab"}
    output = keras.layers.Dense(3, activation="softmax")(keras.layers.Concatenate()(list(inputs.values())))
    made = keras.Model(inputs, output)
    made.compile("sgd", "sparse_categorical_crossentropy")
    assert "subtract 1" in said(made, data)[0]


def test_rows_that_are_sorted_are_told_where_the_last_ones_are_held_out() -> None:
    made = model("sparse_categorical_crossentropy")
    with pytest.warns(first_look.CheckWarning, match="the last 12 rows, .* all of class 2: shuffle the rows"):
        stoker.fit(made, X, np.sort(Y), validation_split=0.2, check=True, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stoker.fit(made, X, Y, validation_split=0.2, check=True, verbose=0)
