"""Keras' method is another one for one model, in one thread, for the time of a call, and Keras' own again after it."""

from __future__ import annotations

import threading
from typing import Any

import keras
import numpy as np
import pytest
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

from stoker.train.execution.own_methods import calls_own, is_own, original_arguments, redirect_method


class Doubles(keras.Sequential):
    def predict(self, x: Any, *args: Any, **kwds: Any) -> Any:
        return super().predict(2 * x, *args, **kwds)


def made(kind: type = Doubles) -> Any:
    return kind([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="ones")])


X: Any = np.ones((3, 1), "float32")


def test_one_model_in_one_thread() -> None:
    keras_predict = TensorFlowTrainer.predict
    model, other = made(), made()
    found: dict[str, Any] = {}
    with redirect_method(model, "predict", lambda x, **kwds: x):
        found["model"] = model.predict(X)
        found["other model"] = other.predict(3 * X, verbose=0)
        thread = threading.Thread(target=lambda: found.update({"thread": model.predict(4 * X, verbose=0)}))
        thread.start()
        thread.join()
    assert {name: value.tolist()[0][0] for name, value in found.items()} == {
        "model": 2,
        "other model": 6,
        "thread": 8,
    }
    assert TensorFlowTrainer.predict is keras_predict


def test_two_threads_may_leave_in_any_order() -> None:
    keras_predict = TensorFlowTrainer.predict
    begun, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with redirect_method(made(), "predict", lambda x: x):
            begun.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    model = made()
    with redirect_method(model, "predict", lambda x: "ours"):
        thread.start()
        begun.wait()
    with redirect_method(model, "predict", lambda x: "ours again"):
        leave.set()
        thread.join()
        assert model.predict(X) == "ours again"
    assert TensorFlowTrainer.predict is keras_predict


def test_what_is_called_meanwhile_is_keras() -> None:
    model = made()

    @calls_own
    def predict(model: Any, x: Any, *, option: int = 0) -> Any:
        inner = model.predict(x, verbose=0)
        given = original_arguments(model, "predict")
        return option, float(inner[0, 0]), given is not None and given["x"] is X

    assert predict(model, X, option=5) == (5, 4.0, True)
    assert original_arguments(model, "predict") is None


def test_an_error_puts_keras_back() -> None:
    keras_predict = TensorFlowTrainer.predict

    def fails(x: Any) -> Any:
        raise OSError("disk")

    model = made()
    with redirect_method(model, "predict", fails), pytest.raises(OSError, match="disk"):
        model.predict(X)
    assert TensorFlowTrainer.predict is keras_predict


def test_a_method_of_one_object_is_its_own() -> None:
    plain = made(keras.Sequential)
    assert not is_own(plain, "predict")
    plain.predict = lambda x: TensorFlowTrainer.predict(plain, x + 1, verbose=0)
    assert is_own(plain, "predict")
    with redirect_method(plain, "predict", lambda x, **kwds: x.tolist()):
        assert plain.predict(X) == [[2.0]] * 3
