"""What was traced for one verb serves the others, until the model is not what it was."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import stoker
from tests.train import models

X, Y = models.data(44)
TRACED: list[bool] = []


class Counted(keras.layers.Layer):
    """Its `call` runs in Python once a trace."""

    def call(self, x: Any, training: bool = False) -> Any:
        TRACED.append(training)
        return x


@pytest.fixture
def model() -> Any:
    made = models.dense(Counted())
    TRACED.clear()
    return made


def fit(model: Any, x: Any = X, y: Any = Y) -> None:
    stoker.fit(model, x, y, 8, epochs=2, verbose=0, validation_data=(X[:20], Y[:20]))


def test_evaluate_after_a_fit_with_validation_traces_nothing(model: Any) -> None:
    fit(model)
    assert TRACED == [True, False]
    for rows, size in ((20, 8), (44, 32), (44, 11), (3, 32)):
        ours = stoker.evaluate(model, X[:rows], Y[:rows], batch_size=size, verbose=0)
        assert TRACED == [True, False], (rows, size)
        assert ours == pytest.approx(model.evaluate(X[:rows], Y[:rows], size, verbose=0), rel=1e-5)
        TRACED[2:] = []


def test_a_second_fit_traces_nothing(model: Any) -> None:
    fit(model)
    stoker.evaluate(model, X, Y, verbose=0)
    fit(model)
    assert TRACED == [True, False]


def test_a_fit_on_other_rows_traces_nothing(model: Any) -> None:
    """Batches of the same shape: 36 rows have a shorter last one, too."""
    fit(model)
    fit(model, X[:36], Y[:36])
    assert TRACED == [True, False]


def test_a_fit_after_evaluate_traces_only_its_own_step(model: Any) -> None:
    stoker.evaluate(model, X, Y, verbose=0)
    fit(model)
    assert TRACED == [False, True]


def test_a_changed_model_is_traced_anew_for_all_verbs(model: Any) -> None:
    fit(model)
    model.layers[-1].activation = keras.activations.sigmoid
    stoker.evaluate(model, X, Y, verbose=0)
    assert TRACED == [True, False, False]
    fit(model)
    assert TRACED == [True, False, False, True]
    model.layers[0].trainable = False
    fit(model)
    assert TRACED == [True, False, False, True, True, False]


def test_other_lengths_of_text_open_the_dimension_once() -> None:
    kernel = keras.layers.Dense(3)
    model = keras.Sequential([keras.Input((None, 2)), Counted(), kernel, keras.layers.GlobalMaxPooling1D()])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    TRACED.clear()
    for length in (3, 5, 7, 4):
        x: Any = np.ones((10, length, 2), "float32")
        ours = stoker.evaluate(model, x, Y[:10], verbose=0)
        assert len(TRACED) <= 2
        kept = list(TRACED)
        assert ours == pytest.approx(model.evaluate(x, Y[:10], verbose=0), rel=1e-5)
        TRACED[:] = kept
