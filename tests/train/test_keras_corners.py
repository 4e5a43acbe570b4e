"""Corners of `model.fit`: what few programs do, and Keras' own tests ask for. Here as there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer as Trainer

import stoker
from stoker.errors import StokerError
from tests.train import models

X, Y = models.data(44)
OPTIONS: dict[str, Any] = {"batch_size": 8, "epochs": 2, "shuffle": False, "verbose": 0}


def both(make: Any, *args: Any, **options: Any) -> tuple[Any, Any]:
    """The histories and last weights of two equal models, trained by Keras and by Stoker."""
    found = []
    for fit in (lambda model, *a, **k: model.fit(*a, **k), stoker.fit):
        keras.utils.set_random_seed(3)
        model = make()
        callbacks = [one() for one in options.get("callbacks", [])]
        history = fit(model, *args, **{**OPTIONS, **options, "callbacks": callbacks}).history
        found.append((history, model.get_weights(), callbacks))
    return found[0], found[1]


def assert_equal(theirs: Any, ours: Any) -> None:
    assert list(ours[0]) == list(theirs[0])
    for key, values in theirs[0].items():
        np.testing.assert_allclose(ours[0][key], values, rtol=1e-5, err_msg=key)
    for mine, other in zip(ours[1], theirs[1], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-7)


class TrainedLayer(Trainer, keras.layers.Layer):
    """A layer that Keras' Trainer is mixed into: what Keras' own tests train."""

    def __init__(self) -> None:
        keras.layers.Layer.__init__(self)
        Trainer.__init__(self)
        self.dense = keras.layers.Dense(3, activation="softmax")
        self.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])

    def call(self, x: Any) -> Any:
        return self.dense(x)


def test_anything_that_is_a_keras_trainer() -> None:
    assert_equal(*both(TrainedLayer, X, Y, validation_data=(X[:10], Y[:10])))
    model = TrainedLayer()
    stoker.fit(model, X, Y, **OPTIONS)
    theirs = model.evaluate(X, Y, verbose=0)
    assert stoker.evaluate(model, X, Y, verbose=0) == pytest.approx(theirs, rel=1e-5)
    np.testing.assert_allclose(
        stoker.predict(model, X, verbose=0), model.predict(X, verbose=0), rtol=1e-5, atol=1e-6
    )


class Batches(keras.callbacks.Callback):
    """Which batches it was told of."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.seen.append(("begin", batch))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.seen.append(("end", batch))

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.seen.append(("test begin", batch))

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self.seen.append(("test end", batch))


# With steps_per_epoch Keras runs whole executions: 6 steps for 4 if there are three in each.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "per_execution"),
    [
        *((data, n) for data in ("rows", "dataset") for n in (1, 4, 16)),
        *(("steps_per_epoch", n) for n in (2, 3)),
    ],
)
@pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")
def test_batches_are_counted_as_by_keras(data: str, per_execution: int) -> None:
    def make() -> Any:
        return models.dense(steps_per_execution=per_execution)

    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    arguments: dict[str, Any] = {
        "rows": {"x": X, "y": Y},
        "dataset": {"x": dataset, "batch_size": None, "shuffle": True},
        "steps_per_epoch": {"x": dataset.repeat(), "batch_size": None, "shuffle": True, "steps_per_epoch": 4},
    }[data]
    theirs, ours = both(make, callbacks=[Batches], validation_data=(X[:20], Y[:20]), **arguments)
    assert ours[2][0].seen == theirs[2][0].seen
    assert_equal(theirs, ours)


class PerSample(keras.Model):
    """Its step returns a value for each row."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(3)
        self.compile(keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    def call(self, x: Any) -> Any:
        return self.dense(x)

    def train_step(self, data: Any) -> Any:
        x, y = data
        logs = super().train_step(data)
        return {"zeta": logs["loss"], "losses": keras.ops.max(self(x), axis=1), "alpha": keras.ops.mean(y)}

    def test_step(self, data: Any) -> Any:
        return {"losses": keras.ops.max(self(data[0]), axis=1), "b": keras.ops.size(data[1])}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "plan"), [(44, None), (40, None), (6, None), (44, "streamed"), (44, "step"), (44, "1")]
)
def test_a_step_that_returns_a_value_for_each_row(rows: int, plan: str | None) -> None:
    keras.utils.set_random_seed(3)
    model = PerSample()
    theirs = model.fit(X[:rows], Y[:rows], validation_data=(X[:10], Y[:10]), **OPTIONS)
    keras.utils.set_random_seed(3)
    ours = stoker.fit(PerSample(), X[:rows], Y[:rows], validation_data=(X[:10], Y[:10]), plan=plan, **OPTIONS)
    assert list(ours.history) == list(theirs.history)
    for key, values in theirs.history.items():
        for mine, other in zip(ours.history[key], values, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-5, err_msg=key)


class Counts(keras.metrics.Metric):
    """A metric whose result is a dict."""

    def __init__(self) -> None:
        super().__init__(name="counts")
        self.rows = self.add_variable((), "zeros", name="rows")
        self.total = self.add_variable((), "zeros", name="total")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.rows.assign(self.rows + keras.ops.cast(keras.ops.shape(y_pred)[0], "float32"))
        self.total.assign(self.total + keras.ops.sum(keras.ops.max(y_pred, axis=1)))

    def result(self) -> Any:
        # Not the variables themselves: Keras reads those only after the validation has reset them.
        return {"zrows": self.rows * 1, "atotal": self.total * 1}


def test_a_metric_whose_result_is_a_dict() -> None:
    def make() -> Any:
        return models.dense(metrics=["accuracy", Counts()])

    theirs, ours = both(make, X, Y, validation_data=(X[:10], Y[:10]))
    assert_equal(theirs, ours)
    assert set(theirs[0]) >= {"zrows", "atotal", "val_zrows"}
    model = make()
    stoker.fit(model, X, Y, **OPTIONS)
    assert stoker.evaluate(model, X, Y, verbose=0, return_dict=True) == pytest.approx(
        model.evaluate(X, Y, verbose=0, return_dict=True), rel=1e-5
    )


class OwnDictStep(keras.Model):
    """An own step whose metric's result is a dict, returned as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(3, activation="softmax")
        self.counts = Counts()
        self.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")

    def call(self, x: Any) -> Any:
        return self.dense(x)

    def train_step(self, data: Any) -> Any:
        logs = super().train_step(data)
        self.counts.update_state(data[1], self(data[0]))
        return {"z": logs["loss"], "counts": self.counts.result(), "a": logs["loss"] * 2}


def test_an_own_step_that_returns_a_dict_in_its_logs() -> None:
    assert_equal(*both(OwnDictStep, X, Y))


def stops_at(hook: str) -> type[keras.callbacks.Callback]:
    class Stops(Batches):
        pass

    def stop(self: Any, *_: Any, **__: Any) -> None:
        self.model.stop_training = True

    setattr(Stops, hook, stop)
    return Stops


@pytest.mark.slow
@pytest.mark.parametrize("hook", ["on_train_begin", "on_epoch_begin", "on_train_batch_begin", "on_epoch_end"])
@pytest.mark.parametrize("per_execution", [1, 4])
def test_a_wish_to_stop_is_heard_where_keras_hears_it(hook: str, per_execution: int) -> None:
    def make() -> Any:
        return models.dense(steps_per_execution=per_execution)

    theirs, ours = both(make, X, Y, callbacks=[stops_at(hook)])
    assert ours[2][0].seen == theirs[2][0].seen
    assert_equal(theirs, ours)


class StopsSilently(keras.callbacks.Callback):
    """Without a hook on batches, which would have every batch a call of its own."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.model.stop_training = True


def test_a_wish_to_stop_before_a_long_call() -> None:
    assert_equal(*both(models.dense, X, Y, callbacks=[StopsSilently]))


@pytest.mark.parametrize("rows", [44, 32])
def test_a_layer_frozen_without_compile_is_not_trained(rows: int) -> None:
    model = models.dense(keras.layers.Dense(5))
    stoker.fit(model, X, Y, **OPTIONS)
    model.layers[0].trainable = False
    frozen, trained = (layer.get_weights()[0] for layer in model.layers)
    stoker.fit(model, X[:rows], Y[:rows], **OPTIONS)
    np.testing.assert_array_equal(model.layers[0].get_weights()[0], frozen)
    assert np.any(model.layers[1].get_weights()[0] != trained)


@pytest.fixture
def functions_run_eagerly() -> Iterator[None]:
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.usefixtures("functions_run_eagerly")
def test_functions_that_shall_run_eagerly_do() -> None:
    eager: list[bool] = []

    class Looks(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            eager.append(tf.executing_eagerly())
            return x

    model = models.dense(Looks())
    eager.clear()
    history = stoker.fit(model, X, Y, **OPTIONS)
    assert eager == [True] * 12
    assert "steps run eagerly" in history.plan.reasons


class OwnFunction(keras.Sequential):
    def make_train_function(self, force: bool = False) -> Any:
        return super().make_train_function(force)


def test_what_would_be_bypassed_is_refused_in_one_line() -> None:
    model = models.compiled_(OwnFunction([keras.Input((4,)), keras.layers.Dense(3, activation="softmax")]))
    with pytest.raises(
        StokerError, match=r"OwnFunction overrides make_train_function.*use model.fit, or"
    ) as told:
        stoker.fit(model, X, Y, **OPTIONS)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["train_function", "test_function"])
def test_a_function_set_by_hand_is_refused(name: str) -> None:
    """Keras runs what it finds there."""
    model = models.dense()
    model.fit(X, Y, validation_data=(X, Y), **OPTIONS)
    stoker.fit(model, X, Y, validation_data=(X, Y), **OPTIONS)
    setattr(model, name, lambda iterator: {"loss": 0.0})
    with pytest.raises(StokerError, match=f"Sequential overrides {name}"):
        stoker.fit(model, X, Y, validation_data=(X, Y), **OPTIONS)
    if name == "test_function":
        assert stoker.evaluate(model, X, Y, verbose=0, return_dict=True) == {"loss": 0.0}


class OwnTestFunction(keras.Sequential):
    def make_test_function(self, force: bool = False) -> Any:
        return super().make_test_function(force)


def test_what_validation_would_bypass_is_refused() -> None:
    layers = [keras.Input((4,)), keras.layers.Dense(3, activation="softmax")]
    model = models.compiled_(OwnTestFunction(layers))
    with pytest.raises(
        StokerError, match=r"OwnTestFunction overrides make_test_function.*override test_step"
    ):
        stoker.fit(model, X, Y, **{**OPTIONS, "validation_data": (X[:10], Y[:10])})
    stoker.fit(model, X, Y, **OPTIONS)


class BuildsItself(keras.Model):
    """Has no weights before it sees a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = keras.layers.Dense(5), keras.layers.Dense(3, activation="softmax")
        self.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])

    def call(self, x: Any) -> Any:
        return self.last(self.first(x))


class Interrupted(Exception):
    pass


class InterruptsAt(keras.callbacks.Callback):
    def __init__(self, epoch: int) -> None:
        super().__init__()
        self.set_state(epoch)

    def get_state(self) -> int:
        return 99

    def set_state(self, epoch: int) -> None:
        self.at = epoch

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == self.at:
            raise Interrupted


@pytest.mark.parametrize("kind", [BuildsItself, PerSample])
def test_a_checkpoint_of_a_model_that_builds_itself(kind: Any, tmp_path: Path) -> None:
    def run(directory: Path, interrupt: int) -> Any:
        keras.utils.set_random_seed(4)
        model = kind()
        stoker.fit(
            model,
            X,
            Y,
            8,
            epochs=4,
            verbose=0,
            callbacks=[InterruptsAt(interrupt)],
            validation_data=(X[:10], Y[:10]),
            checkpoint=stoker.Checkpoint(directory, every=4),
        )
        return model.get_weights()

    whole = run(tmp_path / "whole", 99)
    with pytest.raises(Interrupted):
        run(tmp_path / "cut", 2)
    for resumed, uninterrupted in zip(run(tmp_path / "cut", 99), whole, strict=True):
        np.testing.assert_array_equal(resumed, uninterrupted)
