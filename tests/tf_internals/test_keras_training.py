"""Keras' trainer, callbacks and progress bar."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from stoker.tf_internals import keras_training
from stoker.tf_internals.keras_training import (
    BOOKKEEPING,
    CALLBACK_ATTRIBUTES,
    CALLBACK_STATE,
    KERAS_2,
    SORTS_RESULTS,
)
from tests.tf_internals.calls import recorded

X: Any = np.ones((4, 2), np.float32)
Y: Any = np.ones((4, 1), np.float32)


def compiled(**options: Any) -> keras.Model:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(**{"loss": "mse", "optimizer": "sgd", **options})
    return model


def test_a_model_has_its_loops_from_the_trainers() -> None:
    """`TensorFlowTrainer`, `Trainer` and `KERAS_2`."""
    theirs = keras_training.TensorFlowTrainer
    assert issubclass(keras.Model, theirs)
    assert issubclass(theirs, keras_training.Trainer)
    for name in ("fit", "evaluate", "predict", "train_step", "test_step", "make_test_function"):
        assert getattr(keras.Model, name) is getattr(theirs, name)
    for name in ("compute_metrics", "get_metrics_result", "reset_metrics", "compile"):
        assert getattr(keras.Model, name) is getattr(keras_training.Trainer, name)
    assert not keras.Model.__module__.startswith(KERAS_2)


def test_epoch_iterator_creation_is_passed_by_fit() -> None:
    with recorded(keras_training.epoch_iterator_creation()) as calls:
        compiled().fit(X, Y, verbose=0)
    assert int(calls[0][0].data_adapter.batch_size) == 32
    assert calls[0][0].data_adapter.num_batches == -(-len(X) // 32)
    assert calls[0][0].steps_per_epoch is None


def test_filter_traceback_keeps_what_it_filters() -> None:
    def plain() -> int:
        return 1

    filtered = keras_training.filter_traceback(plain)
    assert filtered() == 1
    assert filtered.__wrapped__ is plain  # type: ignore[attr-defined]
    assert hasattr(keras.Model.fit, "__wrapped__")


def test_is_made_by_keras() -> None:
    model = compiled()
    model.evaluate(X, Y, verbose=0)
    assert keras_training.is_made_by_keras(model.test_function)
    assert not keras_training.is_made_by_keras(tf.function(lambda iterator: None))


def test_strategy_of_a_model() -> None:
    assert keras_training.strategy_of(compiled()) is None
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        model = compiled()
    assert keras_training.strategy_of(model) is strategy


def test_the_name_keras_gives_a_model_of_a_class() -> None:
    class OwnKind(keras.Model):
        pass

    assert keras_training.default_name(OwnKind()) == "own_kind"
    for model in (OwnKind(), compiled()):
        assert str(model.name).startswith(keras_training.default_name(model))


def test_build_makes_all_variables() -> None:
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="adam", metrics=["mae"])
    keras_training.build(model, (tf.TensorSpec([4, 2]), tf.TensorSpec([4, 1])))
    assert model.built
    assert model.optimizer.built
    assert len(model.metrics_variables) == 4


def test_supports_xla() -> None:
    assert keras_training.supports_xla(compiled())
    text = keras.Sequential([keras.layers.TextVectorization()])
    assert not keras_training.supports_xla(text)


@pytest.mark.parametrize("training", [True, False])
def test_forward_gives_loss_and_predictions_alone(training: bool) -> None:
    model = compiled()
    model.reset_metrics()
    loss, predicted = keras_training.forward(model, (X, Y), training=training)
    np.testing.assert_allclose(loss, np.mean((predicted - Y) ** 2), rtol=1e-5)
    tracker = keras_training.loss_tracker(model)
    assert float(tracker.result()) == 0
    tracker.update_state(loss, sample_weight=4)
    assert model.get_metrics_result()["loss"] == tracker.result()


def test_given_losses() -> None:
    loss = keras.losses.MeanSquaredError(reduction="sum")
    assert keras_training.given_losses(compiled(loss=loss)) == [loss]
    assert keras_training.given_losses(compiled()) == ["mse"]
    assert keras_training.given_losses(compiled(loss=None)) == []


def test_has_metrics() -> None:
    assert keras_training.has_metrics(compiled(metrics=["mae"]))
    assert not keras_training.has_metrics(compiled())


def test_results_and_flatten_results() -> None:
    model = compiled(metrics=["mae"])
    logs = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert list(keras_training.results(model, logs)) == list(logs) == ["loss", "mae"]
    assert keras_training.results(model, {"own": 1}) == {"own": 1}
    assert keras_training.flatten_results(model, logs) == list(logs.values())


def test_evaluate_sorts_results_or_does_not() -> None:
    """`SORTS_RESULTS`."""

    class Own(keras.Model):
        def test_step(self, data: Any) -> dict[str, Any]:
            return {"b": tf.constant(1.0), "a": tf.constant(2)}

    model = Own()
    model.compile()
    found = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert list(found) == (["a", "b"] if SORTS_RESULTS else ["b", "a"])


def test_to_numbers() -> None:
    made = keras_training.to_numbers({"b": tf.constant(1.5), "a": np.float32(2), "c": {"d": tf.constant(3)}})
    assert made == {"b": 1.5, "a": 2.0, "d": 3.0}
    assert all(type(one) is float for one in made.values())


def test_restored_epoch() -> None:
    model = compiled()
    assert not keras_training.restored_epoch(model)
    model._initial_epoch = 3
    assert keras_training.restored_epoch(model) == 3


def test_is_validated() -> None:
    model = compiled()
    assert [keras_training.is_validated(model, epoch, 2) for epoch in range(4)] == [False, True, False, True]
    assert [keras_training.is_validated(model, epoch, [1]) for epoch in range(2)] == [True, False]


def test_does_nothing() -> None:
    class Own(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None: ...

    assert keras_training.does_nothing(Own().on_epoch_begin)
    assert keras_training.does_nothing(Own().on_train_batch_end)
    assert not keras_training.does_nothing(Own().on_epoch_end)


def test_profiles(tmp_path: Any) -> None:
    assert not keras_training.profiles(keras.callbacks.TensorBoard(tmp_path))
    assert keras_training.profiles(keras.callbacks.TensorBoard(tmp_path, profile_batch=2))


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    keras_training.show("a line")
    assert capsys.readouterr().out == "a line\n"


def test_fit_writes_only_bookkeeping_on_a_model() -> None:
    """`BOOKKEEPING`."""
    model = compiled()
    model.fit(X, Y, verbose=0)
    before = dict(vars(model))
    model.fit(X, Y, validation_data=(X, Y), verbose=0)
    model.predict(X, verbose=0)
    after = vars(model)
    assert {name for name in after if before.get(name) is not after[name]} <= BOOKKEEPING


@pytest.mark.parametrize(("kind", "names"), CALLBACK_STATE, ids=lambda one: getattr(one, "__name__", None))
def test_callbacks_remember_there(kind: Any, names: tuple[str, ...], tmp_path: Any) -> None:
    """`CALLBACK_STATE` and `CALLBACK_ATTRIBUTES`."""
    given = {
        keras.callbacks.ModelCheckpoint: {"filepath": tmp_path / "model.keras"},
        keras.callbacks.TensorBoard: {"log_dir": tmp_path},
        keras.callbacks.EarlyStopping: {"monitor": "loss", "restore_best_weights": True},
        keras.callbacks.ReduceLROnPlateau: {"monitor": "loss"},
    }
    callback = kind(**given.get(kind, {}))
    optimizer = keras.optimizers.SGD(use_ema=True)
    compiled(optimizer=optimizer).fit(X, Y, verbose=0, callbacks=[callback])
    assert set(names) <= vars(callback).keys()
    plain = keras.callbacks.Callback()
    plain.set_model(compiled())
    plain.set_params({})
    assert vars(plain).keys() <= CALLBACK_ATTRIBUTES


def test_the_bar_is_ours(capsys: pytest.CaptureFixture[str]) -> None:
    """`SpeedBar` and `BarCallback`."""

    class Bar(keras_training.SpeedBar):
        def describe_speed(self, seconds: float, unit: str) -> str:
            return f" <{unit}: {seconds > 0}>"

    class Callback(keras_training.BarCallback):
        def make_bar(self) -> Bar:
            return Bar(target=self.target, verbose=1, unit_name="step")

    compiled().fit(X, Y, verbose=0, callbacks=[callback := Callback()])
    assert isinstance(callback.progbar, Bar)
    assert "<step: True>" in capsys.readouterr().out
