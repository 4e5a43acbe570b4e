"""Models with a `fit`, an `evaluate` or a `predict` of their own, which Stoker calls: same numbers as under Keras."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

import stoker
from stoker.errors import ArgumentError
from tests.train import models

X, Y = models.data(44)
WORDS = ["red one", "green two", "blue three", "two red"] * 8
LABELS = np.array([0, 1, 2, 1] * 8)
OPTIONS: dict[str, Any] = {"epochs": 3, "verbose": 0}


def compiled(kind: type, *inputs: Any) -> Any:
    return models.compiled_(kind([*inputs, keras.layers.Dense(3, activation="softmax")]))


def rows(kind: type) -> Any:
    keras.utils.set_random_seed(3)
    return compiled(kind, keras.Input((4,)), keras.layers.Dense(8, activation="relu"))


class Task(keras.Sequential):
    """Takes texts: each of its methods prepares them and calls Keras', as the tasks of keras_hub do."""

    def prepare(self, words: Any, *more: Any) -> Any:
        ids = tf.strings.to_hash_bucket_fast(tf.strings.split(words).to_tensor(shape=[None, 2]), 20)
        return (tf.one_hot(ids, 20), *more) if more else tf.one_hot(ids, 20)

    def _batches(self, x: Any, y: Any, batch_size: int | None) -> Any:
        if not isinstance(x, tf.data.Dataset):
            x = tf.data.Dataset.from_tensor_slices(x if y is None else (x, y)).batch(batch_size or 32)
        return x.map(self.prepare, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    def fit(
        self, x: Any, y: Any = None, batch_size: Any = None, validation_data: Any = None, **kwds: Any
    ) -> Any:
        if validation_data is not None and not isinstance(validation_data, tf.data.Dataset):
            validation_data = tf.data.Dataset.from_tensor_slices(validation_data).batch(batch_size or 32)
        return super().fit(self._batches(x, y, batch_size), validation_data=validation_data, **kwds)

    def evaluate(self, x: Any = None, y: Any = None, batch_size: Any = None, **kwds: Any) -> Any:
        kwds.pop("_use_cached_eval_dataset", None)
        kwds.pop("sample_weight", None)
        return super().evaluate(self._batches(x, y, batch_size), **kwds)

    def predict(self, x: Any, batch_size: Any = None, **kwds: Any) -> Any:
        return super().predict(self._batches(x, None, batch_size), **kwds)


class TaskWithCachedValidation(Task):
    """Prepares the validation data in `fit`, and has Keras' `evaluate` use what `fit` keeps of it."""

    def fit(
        self, x: Any, y: Any = None, batch_size: Any = None, validation_data: Any = None, **kwds: Any
    ) -> Any:
        if validation_data is not None:
            words, labels = validation_data
            validation_data = self._batches(words, labels, batch_size)
        batches = self._batches(x, y, batch_size)
        return super(Task, self).fit(batches, validation_data=validation_data, **kwds)

    def evaluate(self, x: Any = None, y: Any = None, batch_size: Any = None, **kwds: Any) -> Any:
        if kwds.get("_use_cached_eval_dataset"):
            return super(Task, self).evaluate(x, y, batch_size, **kwds)
        return super().evaluate(x, y, batch_size, **kwds)


def texts(kind: type = Task) -> Any:
    keras.utils.set_random_seed(3)
    return compiled(kind, keras.Input((2, 20)), keras.layers.Flatten(), keras.layers.Dropout(0.2))


def compare(make: Callable[[], Any], *args: Any, **options: Any) -> Any:
    """Train with Keras and with Stoker from the same seeds; the same history, weights and results."""
    found = []
    for stoked in (False, True):
        model = make()
        called = (lambda *a, model=model, **k: stoker.fit(model, *a, **k)) if stoked else model.fit
        history = called(*args, **{**OPTIONS, **options})
        found.append((history, model))
    (theirs, keras_model), (ours, model) = found
    assert list(ours.history) == list(theirs.history)
    for key, values in theirs.history.items():
        np.testing.assert_allclose(ours.history[key], values, rtol=1e-5, err_msg=key)
    for mine, other in zip(model.get_weights(), keras_model.get_weights(), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-7)
    return ours, model


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Task, TaskWithCachedValidation])
@pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")
def test_a_task_that_prepares_its_data(kind: type) -> None:
    keras_methods = (TensorFlowTrainer.fit, TensorFlowTrainer.evaluate, TensorFlowTrainer.predict)
    held_out = (WORDS[:9], LABELS[:9])
    history, model = compare(lambda: texts(kind), WORDS, LABELS, batch_size=8, validation_data=held_out)
    assert "the prepared data is kept in memory" in history.plan.reasons
    theirs = model.evaluate(WORDS, LABELS, verbose=0)
    assert stoker.evaluate(model, WORDS, LABELS, verbose=0) == pytest.approx(theirs, rel=1e-5)
    expected = model.predict(tf.constant(WORDS), 5, verbose=0)
    np.testing.assert_allclose(stoker.predict(model, tf.constant(WORDS), 5, verbose=0), expected, rtol=1e-5)
    assert (TensorFlowTrainer.fit, TensorFlowTrainer.evaluate, TensorFlowTrainer.predict) == keras_methods


@pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")
def test_a_task_with_a_dataset_of_its_own() -> None:
    batches = tf.data.Dataset.from_tensor_slices((WORDS, LABELS)).batch(8)
    history, _ = compare(texts, batches, validation_data=batches.take(2))
    assert "the prepared data is kept in memory" not in history.plan.reasons


class Augments(Task):
    def prepare(self, words: Any, *more: Any) -> Any:
        ready, *rest = super().prepare(words, *more)
        return (ready + tf.random.normal(tf.shape(ready), seed=4), *rest)


def test_what_is_random_is_prepared_anew_in_every_epoch() -> None:
    history = stoker.fit(texts(Augments), WORDS, LABELS, **OPTIONS)
    assert "the prepared data is kept in memory" not in history.plan.reasons


class ScaledEvaluate(keras.Sequential):
    """Evaluates raw rows."""

    # Not on the model: an attribute that is set means that it has to be traced again.
    called_with: ClassVar[dict[str, Any]] = {}

    def evaluate(self, x: Any = None, y: Any = None, **kwds: Any) -> Any:
        kwds.pop("_use_cached_eval_dataset", None)
        self.called_with.update(kwds, callbacks=type(kwds.get("callbacks")).__name__)
        return super().evaluate(np.asarray(x) / 255, y, **kwds)


class IgnoredChange(keras.Sequential):
    """Passes everything on: Keras then evaluates on what `fit` keeps, whatever `x` is."""

    def evaluate(self, x: Any = None, y: Any = None, **kwds: Any) -> Any:
        return super().evaluate(np.asarray(x) * 7, y, **kwds)


class TwoEvaluations(keras.Sequential):
    def evaluate(self, x: Any = None, y: Any = None, **kwds: Any) -> Any:
        kwds.pop("_use_cached_eval_dataset", None)
        kwds.pop("sample_weight", None)
        first = super().evaluate(x[:5], y[:5], **kwds)
        second = super().evaluate(x[5:], y[5:], **kwds)
        return {"first": first["loss"], "second": second["loss"]}


class EvaluatesAlone(keras.Sequential):
    """Never calls Keras' method."""

    def evaluate(self, x: Any = None, y: Any = None, **kwds: Any) -> Any:
        return {"mean": float(np.mean(self(x)[:, 0]))}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ScaledEvaluate, IgnoredChange, TwoEvaluations, EvaluatesAlone])
@pytest.mark.parametrize("given", ["data", "split"])
def test_validation_calls_an_evaluate_of_the_models_own(kind: type, given: str) -> None:
    held_out = (X[:20] * 255, Y[:20])
    chosen = {"validation_data": held_out} if given == "data" else {"validation_split": 0.3}
    _, model = compare(lambda: rows(kind), X, Y, 8, shuffle=False, validation_batch_size=6, **chosen)
    if kind is ScaledEvaluate:
        assert model.called_with == {
            "batch_size": 6,
            "callbacks": "CallbackList",
            "return_dict": True,
            "sample_weight": None,
            "steps": None,
        }


def test_validation_of_its_own_is_traced_once() -> None:
    model = rows(ScaledEvaluate)
    traced = []
    test_step = model.test_step

    def noted(batch: Any) -> Any:
        traced.append(batch)
        return test_step(batch)

    model.test_step = noted
    stoker.fit(model, X, Y, 8, validation_data=(X, Y), **{**OPTIONS, "epochs": 6})
    assert len(traced) <= 2


def test_the_store_links_the_data_as_it_was_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STOKER_STORE", f"sqlite:///{tmp_path / 'store.db'}")
    words = tf.constant(WORDS)
    stoker.fit(texts(), words, LABELS, **OPTIONS)
    stoker.evaluate(texts(), words, LABELS, verbose=0)
    with stoker.track("by hand") as run:
        run.uses_data((words, LABELS, None))
    run.flush()
    with closing(sqlite3.connect(tmp_path / "store.db")) as store:
        links = store.execute(
            "select runs.kind, artifacts.hash from links join runs on runs.id = links.run "
            "join artifacts on artifacts.id = links.artifact where links.relation = 'uses'"
        ).fetchall()
    assert sorted(kind for kind, _ in links) == ["evaluate", "track", "train"]
    assert len({found for _, found in links}) == 1


class FitsTwice(keras.Sequential):
    def fit(self, *args: Any, **kwds: Any) -> Any:
        super().fit(*args, **{**kwds, "epochs": 1})
        return super().fit(*args, **kwds)


def test_a_fit_that_calls_keras_twice(tmp_path: Path) -> None:
    compare(lambda: rows(FitsTwice), X, Y, 8, shuffle=False)
    with pytest.raises(
        ArgumentError, match=r"FitsTwice.fit calls Keras' fit more than once.*checkpoint= out"
    ):
        stoker.fit(rows(FitsTwice), X, Y, checkpoint=tmp_path, **OPTIONS)


class FitsByHand(keras.Sequential):
    def fit(self, x: Any, y: Any, **kwds: Any) -> Any:
        return [self.train_on_batch(x, y) for _ in range(2)]


def test_a_fit_that_never_calls_keras_is_said_to(tmp_path: Path) -> None:
    line = (
        r"FitsByHand.fit never called Keras' fit: it ran as it is, without Stoker; checkpoint= had no effect"
    )
    with pytest.warns(UserWarning, match=line) as told:
        assert len(stoker.fit(rows(FitsByHand), X, Y, checkpoint=tmp_path)) == 2
    assert told[0].filename == __file__


class FitsThroughStoker(keras.Sequential):
    calls = 0

    def fit(self, *args: Any, **kwds: Any) -> Any:
        self.calls += 1
        return stoker.fit(self, *args, **kwds)


def test_a_fit_that_calls_stoker_itself() -> None:
    for called in (lambda model, *a, **k: model.fit(*a, **k), stoker.fit):
        model = rows(FitsThroughStoker)
        assert called(model, X, Y, **OPTIONS).plan.feed == "resident"
        assert model.calls == 1


def test_options_of_stokers_reach_it_through_a_fit_of_the_models_own() -> None:
    history = stoker.fit(rows(FitsTwice), X, Y, 4, plan="streamed, 2, none", **OPTIONS)
    assert (history.plan.feed, history.plan.steps_per_call) == ("streamed", 2)


class OtherDefaults(keras.Sequential):
    def fit(self, x: Any, y: Any, epochs: int = 4, extra: int = 0, **kwds: Any) -> Any:
        self.extra = extra
        return super().fit(x, y, epochs=epochs, shuffle=False, **kwds)


def test_the_models_fit_gets_what_was_given_and_no_more() -> None:
    assert len(stoker.fit(rows(OtherDefaults), X, Y, verbose=0).epoch) == 4
    model = rows(OtherDefaults)
    given: dict[str, Any] = {"epochs": 1, "extra": 5, "verbose": 0}
    assert len(stoker.fit(model, X, Y, **given).epoch) == 1
    assert model.extra == 5


class FitsAgain(keras.callbacks.Callback):
    """Trains the model a little while it is trained."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch == 0:
            TensorFlowTrainer.fit(self.model, X[:8], Y[:8], verbose=0)


def test_a_callback_that_calls_keras_fit_gets_keras() -> None:
    history = stoker.fit(rows(FitsTwice), X, Y, callbacks=[FitsAgain()], **OPTIONS)
    assert len(history.epoch) == 3


class StopsAfter(keras.callbacks.Callback):
    def __init__(self, epoch: int) -> None:
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == self.epoch:
            raise InterruptedError


def test_a_task_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    def train(directory: str, last: int) -> Any:
        model = texts()
        checkpoint = stoker.Checkpoint(tmp_path / directory, every=2)
        held_out = (WORDS[:9], LABELS[:9])
        stoker.fit(
            model,
            WORDS,
            LABELS,
            8,
            callbacks=[StopsAfter(last)],
            checkpoint=checkpoint,
            validation_data=held_out,
            **OPTIONS,
        )
        return model.get_weights()

    whole = train("whole", 99)
    with pytest.raises(InterruptedError):
        train("cut", 2)
    for resumed, uninterrupted in zip(train("cut", 99), whole, strict=True):
        np.testing.assert_array_equal(resumed, uninterrupted)


class PredictsScaled(keras.Sequential):
    def predict(self, x: Any, *args: Any, **kwds: Any) -> Any:
        return super().predict(np.asarray(x) / 2, *args, **kwds)


@pytest.mark.parametrize("eager", [False, True])
def test_a_predict_of_the_models_own_prepares_once(eager: bool) -> None:
    """Also where Keras has to run it."""
    model = rows(PredictsScaled)
    model.run_eagerly = eager
    expected = model.predict(X, 8, verbose=0)
    np.testing.assert_allclose(stoker.predict(model, X, 8, verbose=0), expected, rtol=1e-5)
    np.testing.assert_allclose(stoker.predict(model, X, 8, verbose=0, track=True), expected, rtol=1e-5)


class OwnLoss(keras.Sequential):
    def compute_loss(self, *args: Any, **kwds: Any) -> Any:
        return 2 * super().compute_loss(*args, **kwds)


class OwnComputeMetrics(keras.Sequential):
    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        logs = super().compute_metrics(x, y, y_pred, sample_weight)
        return {**logs, "largest": keras.ops.max(y_pred)}


class OwnResults(keras.Sequential):
    def get_metrics_result(self) -> Any:
        return {f"my_{name}": value for name, value in super().get_metrics_result().items()}


class OwnReset(keras.Sequential):
    """Its metrics go on over all epochs, validations included."""

    def reset_metrics(self) -> None:
        self.resets = getattr(self, "resets", 0) + 1


class OwnMetrics(keras.Sequential):
    @property
    def metrics(self) -> Any:
        return super().metrics[:1]


class OwnTrainStep(keras.Sequential):
    def train_step(self, data: Any) -> Any:
        return {**super().train_step(data), "constant": 3.0}

    def test_step(self, data: Any) -> Any:
        return {**super().test_step(data), "constant": 4.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [OwnLoss, OwnComputeMetrics, OwnResults, OwnReset, OwnMetrics, OwnTrainStep],
    ids=lambda k: k.__name__,
)
def test_what_a_model_may_override_counts(kind: type) -> None:
    _, model = compare(lambda: rows(kind), X, Y, 8, shuffle=False, validation_data=(X[:20], Y[:20]))
    if kind is OwnReset:
        assert model.resets == 6
    theirs = model.evaluate(X, Y, verbose=0, return_dict=True)
    ours = stoker.evaluate(model, X, Y, verbose=0, return_dict=True)
    assert list(ours) == list(theirs)
    if kind is not OwnReset:
        assert ours == pytest.approx(theirs, rel=1e-5)
