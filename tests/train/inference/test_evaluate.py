"""`stoker.evaluate` against `model.evaluate`: the same numbers from every kind of model and input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

import stoker
from stoker.errors import StokerError

RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(70, 6)).astype("float32")
Y = RANDOM.integers(0, 3, size=70)
WEIGHT = RANDOM.uniform(size=70).astype("float32")


def classifier() -> keras.Model:
    dense = keras.layers.Dense(8, "relu", kernel_regularizer="l2")
    model = keras.Sequential(
        [keras.Input([6]), dense, keras.layers.Dropout(0.5), keras.layers.Dense(3, "softmax")]
    )
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def weighted() -> keras.Model:
    model = classifier()
    model.compile("sgd", "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
    return model


def two_outputs() -> keras.Model:
    inputs = keras.Input([6])
    outputs = {"kind": keras.layers.Dense(3, "softmax")(inputs), "size": keras.layers.Dense(1)(inputs)}
    model = keras.Model(inputs, outputs)
    losses = {"kind": "sparse_categorical_crossentropy", "size": "mse"}
    model.compile(
        "sgd",
        losses,
        metrics={"kind": ["accuracy"], "size": ["mae"]},
        loss_weights={"size": 0.3, "kind": 2.0},
    )
    return model


def binary() -> keras.Model:
    model = keras.Sequential([keras.Input([6]), keras.layers.Dense(1, "sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=[keras.metrics.AUC(), keras.metrics.Precision()])
    return model


class OwnTestStep(keras.Model):
    """Not built before it is called; its step returns what is no metric of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(3)
        self.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    def call(self, x: Any) -> Any:
        return self.dense(x)

    def test_step(self, data: Any) -> Any:
        x, y, _ = keras.utils.unpack_x_y_sample_weight(data)
        logits = self(x, training=False)
        return {
            "rows": tf.shape(x)[0],
            "spread": tf.reduce_max(logits),
            "nll": self.compute_loss(x, y, logits),
        }


class OwnMetrics(OwnTestStep):
    """The usual step, with one more number from `compute_metrics`."""

    test_step = keras.Model.test_step

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        return {**super().compute_metrics(x, y, y_pred, sample_weight), "rows": tf.shape(x)[0]}


class Pairs(keras.utils.PyDataset):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        part = slice(index * 20, (index + 1) * 20)
        return X[part], Y[part]


def generator() -> Iterator[Any]:
    for start in (0, 32, 64):
        yield X[start : start + 32], Y[start : start + 32], WEIGHT[start : start + 32]


def dataset() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)


BOTH = {"kind": Y, "size": X[:, 0]}
CASES: dict[str, tuple[Callable[[], keras.Model], Callable[[], dict[str, Any]]]] = {
    "arrays": (classifier, lambda: {"x": X, "y": Y}),
    "even batches": (classifier, lambda: {"x": X, "y": Y, "batch_size": 7}),
    "one batch": (classifier, lambda: {"x": X, "y": Y, "batch_size": 70}),
    "one row": (classifier, lambda: {"x": X[:1], "y": Y[:1]}),
    "some steps": (classifier, lambda: {"x": X, "y": Y, "batch_size": 10, "steps": 3}),
    "weights": (weighted, lambda: {"x": X, "y": Y, "sample_weight": WEIGHT}),
    "tensors": (classifier, lambda: {"x": tf.constant(X), "y": tf.constant(Y)}),
    "two outputs": (two_outputs, lambda: {"x": X, "y": BOTH}),
    "two outputs, one weight": (two_outputs, lambda: {"x": X, "y": BOTH, "sample_weight": WEIGHT}),
    "AUC and precision": (binary, lambda: {"x": X, "y": (Y > 1).astype("float32")[:, None]}),
    "own test_step": (OwnTestStep, lambda: {"x": X, "y": Y}),
    "own test_step on a dataset": (OwnTestStep, lambda: {"x": dataset()}),
    "own compute_metrics": (OwnMetrics, lambda: {"x": X, "y": Y}),
    "dataset": (classifier, lambda: {"x": dataset()}),
    "endless dataset": (classifier, lambda: {"x": dataset().repeat(), "steps": 6}),
    "PyDataset": (classifier, lambda: {"x": Pairs()}),
    "generator with weights": (weighted, lambda: {"x": generator()}),
    "sparse": (classifier, lambda: {"x": tf.sparse.from_dense(X), "y": Y}),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize("case", CASES)
def test_the_same_numbers_as_keras(case: str) -> None:
    make_model, arguments = CASES[case]
    model = make_model()
    theirs = model.evaluate(**arguments(), verbose=0, return_dict=True)
    state = [variable.numpy() for variable in model.metrics_variables]
    ours = stoker.evaluate(model, **arguments(), verbose=0, return_dict=True)
    assert list(ours) == list(theirs)
    # Keras 3.12 gives what a step of the model's own returns as tensors.
    theirs = {name: float(value) for name, value in theirs.items()}
    assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-7)
    for variable, value in zip(model.metrics_variables, state, strict=True):
        np.testing.assert_allclose(variable.numpy(), value, rtol=1e-5)
    as_list = stoker.evaluate(model, **arguments(), verbose=0)
    their_list = tf.nest.map_structure(float, model.evaluate(**arguments(), verbose=0))
    assert as_list == pytest.approx(their_list, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    "case", ["arrays", "two outputs, one weight", "own test_step", "dataset", "generator with weights"]
)
def test_the_work_is_not_handed_to_keras(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_model, arguments = CASES[case]
    model = make_model()
    monkeypatch.setattr(TensorFlowTrainer, "evaluate", None)
    assert stoker.evaluate(model, **arguments(), verbose=0, return_dict=True)


def test_what_changes_is_seen() -> None:
    model = classifier()
    before = stoker.evaluate(model, X, Y, verbose=0)
    model.set_weights([weight * 2 for weight in model.get_weights()])
    assert stoker.evaluate(model, X, Y, verbose=0) == pytest.approx(model.evaluate(X, Y, verbose=0), rel=1e-5)
    model.compile(
        "sgd", "sparse_categorical_crossentropy", metrics=["accuracy", "sparse_top_k_categorical_accuracy"]
    )
    assert len(stoker.evaluate(model, X, Y, verbose=0)) == len(before) + 1
    model.layers[0].kernel_regularizer = None
    model.make_test_function(force=True)
    assert stoker.evaluate(model, X, Y, verbose=0) == pytest.approx(model.evaluate(X, Y, verbose=0), rel=1e-5)


class Notes(keras.callbacks.Callback):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def on_test_begin(self, logs: Any = None) -> None:
        self.calls.append("begin")

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self.calls += [batch, round(logs["loss"], 4)]

    def on_test_end(self, logs: Any = None) -> None:
        self.calls.append(round(logs["loss"], 4))


@pytest.mark.slow
@pytest.mark.parametrize("per_execution", [1, 2])
def test_hooks_are_called_as_by_keras(per_execution: int) -> None:
    model, ours, theirs = classifier(), Notes(), Notes()
    model.steps_per_execution = per_execution
    model.evaluate(X, Y, verbose=0, batch_size=8, callbacks=[theirs])
    stoker.evaluate(model, X, Y, verbose=0, batch_size=8, callbacks=[ours])
    assert ours.calls == theirs.calls


def test_steps_are_whole_executions_as_by_keras() -> None:
    model = classifier()
    model.steps_per_execution = 2
    theirs = model.evaluate(X, Y, verbose=0, batch_size=8, steps=3)
    assert stoker.evaluate(model, X, Y, verbose=0, batch_size=8, steps=3) == pytest.approx(theirs, rel=1e-5)
    four, three = (model.evaluate(X[:rows], Y[:rows], verbose=0, batch_size=8) for rows in (32, 24))
    assert theirs == pytest.approx(four, rel=1e-5)
    assert theirs[0] != pytest.approx(three[0], rel=1e-5)


def test_the_bar_shows_the_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    model = classifier()
    scores = stoker.evaluate(model, X, Y)
    shown = capsys.readouterr().out
    assert "3/3" in shown
    assert f"loss: {scores[0]:.4f}" in shown


def test_what_makes_no_sense_is_said() -> None:
    with pytest.raises(StokerError, match="nothing to evaluate: x has no rows"):
        stoker.evaluate(classifier(), X[:0], Y[:0])
    with pytest.raises(ValueError, match="batch_size must be 1 or more, got -3"):
        stoker.evaluate(classifier(), X, Y, batch_size=-3)
    with pytest.raises(ValueError, match="cardinality is ambiguous"):
        stoker.evaluate(classifier(), X, Y[:-1])
    with pytest.raises(ValueError, match="You must call `compile"):
        stoker.evaluate(keras.Sequential([keras.layers.Dense(3)]), X, Y)
