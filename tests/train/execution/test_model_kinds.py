"""What is no model of Keras 3 on TensorFlow: one line, whichever verb it is given to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras.src.trainers.trainer import Trainer

import stoker
from stoker.errors import StokerError

_PROGRAM = """
import keras, numpy, stoker
from stoker.errors import StokerError
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = numpy.ones((8, 3), "float32")
for verb, call in {
    "fit": lambda: stoker.fit(model, x, x[:, :1], verbose=0),
    "evaluate": lambda: stoker.evaluate(model, x, x[:, :1], verbose=0),
    "predict": lambda: stoker.predict(model, x, verbose=0),
    "Trainer": lambda: stoker.Trainer(model, keras.optimizers.SGD(), lambda model, batch: 0.0),
    "export": lambda: stoker.export(model, "bundle"),
}.items():
    try:
        call()
    except StokerError as error:
        print(f"{verb}: {error}")
"""
_BACKEND = (
    "runs on TensorFlow, but Keras runs on numpy: set KERAS_BACKEND=tensorflow before Keras is imported"
)


class TrainedElsewhere(Trainer, keras.layers.Layer):
    """What a model of another backend is: of Keras' Trainer, but not of the one for TensorFlow."""


@pytest.mark.parametrize("verb", ["fit", "evaluate", "predict", "export"])
def test_a_model_of_another_backend(verb: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(keras.config, "backend", lambda: "numpy")
    with pytest.raises(StokerError, match=rf"^stoker\.{verb} {_BACKEND}$"):
        getattr(stoker, verb)(TrainedElsewhere(), tmp_path / "x")


@pytest.mark.parametrize("version", ["3.12.0", "3.16.0"])
@pytest.mark.parametrize("verb", ["fit", "evaluate", "predict"])
def test_a_keras_that_was_never_tried(verb: str, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras, "__version__", version)
    line = (
        rf"^stoker\.{verb}: Keras {version} is not supported: Stoker runs on 3\.12\.1 to 3\.15\. Install one"
    )
    with pytest.raises(StokerError, match=line):
        getattr(stoker, verb)(keras.Sequential([keras.layers.Dense(1)]), np.ones((2, 2)))


def test_keras_on_another_backend(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="Keras' NumPy backend imports it")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "KERAS_BACKEND": "numpy", "TF_CPP_MIN_LOG_LEVEL": "3"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{verb}: stoker.{verb} {_BACKEND}" for verb in ("fit", "evaluate", "predict", "Trainer", "export")
    ]


class Model:
    """Stands for the base class of Keras 2, whose package would bring a TensorFlow of its own."""


Model.__module__ = "tf_keras.src.engine.training"


class Legacy(Model):
    """As a program derives it."""


@pytest.mark.parametrize("verb", ["fit", "evaluate", "predict", "export", "Trainer"])
def test_a_model_of_keras_2(verb: str, tmp_path: Path) -> None:
    calls: dict[str, Any] = {
        "export": lambda model: stoker.export(model, tmp_path / "bundle"),
        "Trainer": lambda model: stoker.Trainer(model, keras.optimizers.SGD(), lambda model, batch: 0.0),
    }
    call = calls.get(verb, lambda model: getattr(stoker, verb)(model, np.ones((2, 3))))
    with pytest.raises(StokerError, match=rf"^stoker\.{verb}.*`import keras`") as told:
        call(Legacy())
    line = str(told.value)
    assert "Legacy" in line
    assert "Keras 2 (tf_keras)" in line
    assert "\n" not in line
    with pytest.raises(StokerError, match=r"keras\.Model"):
        call(3)
