"""The parity table: what `model.fit` does, `stoker.fit` does, number by number, for every row.

Each case trains the same model twice from the same seeds, once with each, and compares the history, the weights, the
optimizer's count, what callbacks were told and what files they left.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from tests.train import models

X, Y = models.data()
VX, VY = models.data(20, seed=1)
WEIGHTS = np.linspace(0.1, 2.0, len(X)).astype("float32")
TWO_IN = {"left": X, "right": X[::-1].copy()}
TWO_OUT = {"kind": Y, "size": X[:, :1]}
WORDS = tf.constant([["red one"], ["green two"], ["blue three"], ["two red"]] * 12)
CB = keras.callbacks


class Events(keras.callbacks.Callback):
    """Writes down what it is told of epochs."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def _note(self, event: str, number: int | None, logs: Any) -> None:
        self.seen.append((event, number, dict(logs or {})))

    def on_train_begin(self, logs: Any = None) -> None:
        self._note("train begin", None, logs)

    def on_train_end(self, logs: Any = None) -> None:
        self._note("train end", None, logs)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._note("epoch begin", epoch, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._note("epoch end", epoch, logs)

    def on_test_begin(self, logs: Any = None) -> None:
        self._note("test begin", None, logs)

    def on_test_end(self, logs: Any = None) -> None:
        self._note("test end", None, logs)


class BatchEvents(Events):
    """And of batches."""

    def __init__(self, stop_at: int | None = None) -> None:
        super().__init__()
        self.stop_at = stop_at

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._note("batch begin", batch, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._note("batch end", batch, logs)
        if batch == self.stop_at:
            self.model.stop_training = True

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._note("test batch begin", batch, logs)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self._note("test batch end", batch, logs)


class Batches(keras.utils.PyDataset):
    """Four batches."""

    @property
    def num_batches(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return batch(index)


def batch(index: int) -> tuple[Any, Any]:
    return X[index * 12 : index * 12 + 12], Y[index * 12 : index * 12 + 12]


def dataset(*parts: Any) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(parts or (X, Y)).batch(10)


def of_unknown_length() -> tf.data.Dataset:
    return dataset().filter(lambda x, y: tf.shape(x)[0] > 0)


def endless() -> Any:
    for index in range(1000):
        yield batch(index % 4)


def four_batches() -> Any:
    for index in range(4):
        yield batch(index)


@dataclass(frozen=True)
class Case:
    """A row of the table: a model, and the arguments it is trained with (called with a directory for files)."""

    arguments: Callable[[Path], dict[str, Any]]
    model: Callable[[], Any] = models.dense
    loose: float = 1e-5
    plan: Any = None
    warns: bool = False
    # When data of unknown length runs out, Keras' graph counts a step of the optimizer that never was.
    keras_overcounts: int = 0


def arrays(**more: Any) -> Callable[[Path], dict[str, Any]]:
    return lambda _: {"x": X, "y": Y, "batch_size": 16, **more}


CASES: dict[str, Case] = {
    # Data
    "arrays": Case(arrays(batch_size=None)),
    "batch size that does not": Case(arrays(batch_size=7)),
    "batch larger than the data": Case(arrays(batch_size=64)),
    "one row a batch": Case(lambda _: {"x": X[:5], "y": Y[:5], "batch_size": 1}),
    "double precision and columns": Case(lambda _: {"x": X.astype("float64"), "y": Y[:, None]}),
    "tensors": Case(lambda _: {"x": tf.constant(X), "y": tf.constant(Y)}),
    "dicts in, dicts out": Case(
        lambda _: {"x": TWO_IN, "y": TWO_OUT, "batch_size": 32}, models.two_in_two_out
    ),
    "lists in, lists out": Case(
        lambda _: {"x": [X, X[::-1].copy()], "y": [X[:, :1], X[:, 1:2]], "batch_size": 32},
        models.list_in_list_out,
    ),
    "text": Case(lambda _: {"x": WORDS, "y": Y, "batch_size": 16}, models.text),
    "no targets": Case(lambda _: {"x": X}, models.autoencoder),
    "sparse": Case(lambda _: {"x": tf.sparse.from_dense(X), "y": Y, "batch_size": 10}),
    "dataset": Case(lambda _: {"x": dataset()}),
    "dataset of unknown length": Case(lambda _: {"x": of_unknown_length()}, warns=True, keras_overcounts=2),
    "dataset without end": Case(lambda _: {"x": dataset().repeat(), "steps_per_epoch": 5}),
    "dataset with weights": Case(lambda _: {"x": dataset(X, Y, WEIGHTS)}),
    "dataset of dicts": Case(lambda _: {"x": dataset(TWO_IN, TWO_OUT)}, models.two_in_two_out),
    "generator": Case(lambda _: {"x": endless(), "steps_per_epoch": 6}),
    "generator that ends": Case(lambda _: {"x": four_batches(), "epochs": 1}, warns=True, keras_overcounts=1),
    "PyDataset": Case(lambda _: {"x": Batches(workers=1)}),
    # Weights
    "sample weights": Case(
        arrays(sample_weight=WEIGHTS), lambda: models.dense(weighted_metrics=["accuracy"])
    ),
    "class weights": Case(arrays(class_weight={0: 1.0, 1: 3.0, 2: 0.2})),
    "class weights on a dataset": Case(lambda _: {"x": dataset(), "class_weight": {0: 1.0, 1: 3.0, 2: 0.2}}),
    "class weights on a PyDataset": Case(
        lambda _: {"x": Batches(), "class_weight": {0: 1.0, 1: 3.0, 2: 0.2}}
    ),
    # Steps and epochs
    "initial epoch": Case(arrays(initial_epoch=1, epochs=3)),
    "fewer steps than batches": Case(arrays(batch_size=10, steps_per_epoch=2, epochs=2)),
    "steps over several passes": Case(arrays(batch_size=10, steps_per_epoch=3, epochs=4), warns=True),
    "steps without a batch size": Case(arrays(batch_size=None, steps_per_epoch=5)),
    # Validation
    "validation split": Case(arrays(validation_split=0.3)),
    "validation arrays": Case(arrays(validation_data=(VX, VY))),
    "validation weights": Case(arrays(validation_data=(VX, VY, np.linspace(0, 1, 20)))),
    "validation dataset": Case(arrays(validation_data=dataset(VX, VY))),
    "validation every second epoch": Case(arrays(validation_data=(VX, VY), validation_freq=2, epochs=4)),
    "validation in chosen epochs": Case(arrays(validation_data=(VX, VY), validation_freq=[1, 3], epochs=3)),
    "validation batches and steps": Case(
        arrays(validation_data=(VX, VY), validation_batch_size=6, validation_steps=2)
    ),
    # Models
    "batch norm": Case(arrays(validation_split=0.2), lambda: models.dense(keras.layers.BatchNormalization())),
    "dropout": Case(arrays(), lambda: models.dense(keras.layers.Dropout(0.5))),
    "regularisation": Case(
        arrays(validation_split=0.2),
        lambda: models.dense(keras.layers.Dense(6, kernel_regularizer="l2", activity_regularizer="l1")),
    ),
    "own train_step": Case(arrays(), lambda: models.compiled_(models.OwnStep(), metrics=None)),
    "own steps and metrics": Case(
        arrays(validation_split=0.2), lambda: models.compiled_(models.OwnMetrics(), metrics=None)
    ),
    "own loss": Case(arrays(), models.own_loss),
    "frozen layer": Case(arrays(), models.frozen),
    # Ways to run
    "run_eagerly": Case(arrays(batch_size=20), lambda: models.dense(run_eagerly=True)),
    "jit_compile": Case(arrays(batch_size=20), lambda: models.dense(jit_compile=True)),
    "mixed_float16": Case(arrays(), lambda: models.mixed("mixed_float16"), loose=1e-2),
    "mixed_bfloat16": Case(arrays(), lambda: models.mixed("mixed_bfloat16"), loose=2e-2),
    "learning rate schedule": Case(
        arrays(),
        lambda: models.dense(
            optimizer=keras.optimizers.SGD(
                keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5), momentum=0.9
            )
        ),
    ),
    "moving average of weights": Case(
        arrays(), lambda: models.dense(optimizer=keras.optimizers.Adam(use_ema=True, ema_momentum=0.5))
    ),
    "gradient accumulation": Case(
        arrays(batch_size=7),
        lambda: models.dense(optimizer=keras.optimizers.SGD(gradient_accumulation_steps=3)),
    ),
    "clipping": Case(
        arrays(), lambda: models.dense(optimizer=keras.optimizers.Adam(0.1, global_clipnorm=0.1))
    ),
    "plan: XLA over the loop": Case(arrays(batch_size=7), plan="loop", loose=1e-4),
    "plan: streamed": Case(arrays(batch_size=7), plan="streamed"),
    "plan: streamed, XLA over the step": Case(arrays(batch_size=7), plan="streamed, step", loose=1e-4),
    "plan: two steps a call": Case(arrays(batch_size=7), plan={"steps_per_call": 2}),
    # Callbacks
    "EarlyStopping": Case(
        lambda _: {
            "x": X,
            "y": Y,
            "batch_size": 24,
            "epochs": 8,
            "validation_data": (VX, VY),
            "callbacks": [CB.EarlyStopping(patience=1, restore_best_weights=True)],
        },
        lambda: models.dense(optimizer=keras.optimizers.SGD(9.0)),
    ),
    "ReduceLROnPlateau": Case(
        lambda _: {
            "x": X,
            "y": Y,
            "batch_size": 24,
            "epochs": 5,
            "callbacks": [CB.ReduceLROnPlateau(monitor="loss", patience=1, min_delta=1.0)],
        }
    ),
    "LearningRateScheduler": Case(
        lambda _: {
            "x": X,
            "y": Y,
            "batch_size": 24,
            "epochs": 3,
            "callbacks": [CB.LearningRateScheduler(lambda epoch, rate: rate * 0.5)],
        }
    ),
    "ModelCheckpoint and CSVLogger": Case(
        lambda path: {
            "x": X,
            "y": Y,
            "batch_size": 24,
            "epochs": 2,
            "callbacks": [
                CB.ModelCheckpoint(str(path / "{epoch}.weights.h5"), save_weights_only=True),
                CB.CSVLogger(str(path / "log.csv")),
            ],
        }
    ),
    "ModelCheckpoint every three batches": Case(
        lambda path: {
            "x": X,
            "y": Y,
            "batch_size": 7,
            "callbacks": [
                CB.ModelCheckpoint(
                    str(path / "{epoch}-{batch}.weights.h5"), save_weights_only=True, save_freq=3
                )
            ],
        }
    ),
    "TensorBoard": Case(
        lambda path: {
            "x": X,
            "y": Y,
            "callbacks": [CB.TensorBoard(str(path / "board"))],
            "validation_split": 0.2,
        }
    ),
    "LambdaCallback": Case(
        lambda path: {
            "x": X,
            "y": Y,
            "batch_size": 20,
            "callbacks": [
                CB.LambdaCallback(on_train_batch_end=lambda batch, logs: (path / f"batch{batch}").touch())
            ],
        }
    ),
    "TerminateOnNaN": Case(
        lambda _: (
            {
                "x": np.where(np.arange(48)[:, None] == 25, np.nan, X),
                "y": Y,
                "callbacks": [CB.TerminateOnNaN()],
            }
            | {"batch_size": 10}
        ),
    ),
    "every batch seen": Case(
        lambda _: {
            "x": X,
            "y": Y,
            "batch_size": 20,
            "callbacks": [BatchEvents()],
            "validation_data": (VX, VY),
        }
    ),
    "every batch seen, of unknown number": Case(
        lambda _: {"x": of_unknown_length(), "callbacks": [BatchEvents()]}, warns=True, keras_overcounts=2
    ),
    "a callback stops within the epoch": Case(
        lambda _: {"x": X, "y": Y, "batch_size": 12, "callbacks": [BatchEvents(stop_at=2)]}
    ),
    "every third batch seen": Case(
        lambda _: {"x": X, "y": Y, "batch_size": 8, "callbacks": [BatchEvents()]},
        lambda: models.dense(steps_per_execution=3),
    ),
    "BackupAndRestore and SwapEMAWeights": Case(
        lambda path: {
            "x": X,
            "y": Y,
            "batch_size": 24,
            "callbacks": [CB.BackupAndRestore(str(path / "backup")), CB.SwapEMAWeights(swap_on_epoch=True)],
        },
        lambda: models.dense(optimizer=keras.optimizers.Adam(use_ema=True)),
    ),
}


@dataclass
class Outcome:
    """What a training left behind."""

    history: dict[str, list[float]]
    epochs: list[int]
    weights: list[Any]
    iterations: int
    events: list[Any]
    files: list[str]
    warned: bool


def trained(case: Case, path: Path, fit: Callable[..., Any]) -> Outcome:
    path.mkdir()
    # Names and counters only: collecting garbage takes longer than training.
    keras.backend.clear_session(free_memory=False)
    keras.utils.set_random_seed(7)
    model = case.model()
    arguments = {"epochs": 2, "verbose": 0, "shuffle": False, "callbacks": [], **case.arguments(path)}
    events = [one for one in arguments["callbacks"] if isinstance(one, Events)] or [Events()]
    if events[0] not in arguments["callbacks"]:
        arguments["callbacks"] = [*arguments["callbacks"], events[0]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        history = fit(model, **arguments)
    return Outcome(
        history.history,
        history.epoch,
        [np.asarray(variable) for variable in model.variables],
        int(model.optimizer.iterations),
        events[0].seen,
        sorted(os.path.relpath(root, path) for root, _, _ in os.walk(path))
        + sorted(name for _, _, names in os.walk(path) for name in names if "tfevents" not in name),
        any("ran out of data" in str(one.message) for one in caught),
    )


@pytest.mark.parametrize("name", CASES)
def test_stoker_fit_is_keras_fit(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    case = CASES[name]
    theirs = trained(case, tmp_path / "keras", lambda model, **arguments: model.fit(**arguments))
    ours = trained(
        case, tmp_path / "stoker", lambda model, **arguments: stoker.fit(model, **arguments, plan=case.plan)
    )

    close: dict[str, Any] = {"rtol": case.loose, "atol": case.loose}
    assert list(ours.history) == list(theirs.history)
    for key, values in theirs.history.items():
        np.testing.assert_allclose(ours.history[key], values, **close, err_msg=key)
    assert ours.epochs == theirs.epochs
    assert ours.iterations == theirs.iterations - case.keras_overcounts
    for mine, other in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_allclose(mine, other, **close)
    assert [event[:2] for event in ours.events] == [event[:2] for event in theirs.events]
    for mine, other in zip(ours.events, theirs.events, strict=True):
        assert list(mine[2]) == list(other[2])
        np.testing.assert_allclose(
            list(mine[2].values()), list(other[2].values()), **close, err_msg=str(mine)
        )
    assert ours.files == theirs.files
    assert ours.warned == theirs.warned == case.warns
