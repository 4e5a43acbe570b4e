"""`stoker.predict` against `model.predict`: the same arrays from every kind of model and input."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

import stoker
from stoker.errors import StokerError
from stoker.train.execution.kept import traces_of

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(70, 6)).astype("float32")
STEPS = RANDOM.normal(size=(40, 5, 2))
WORDS = np.array(["a b c", "b", "c c a d", "a d"] * 5, dtype=object)


def dense() -> keras.Model:
    return keras.Sequential(
        [keras.Input([6]), keras.layers.Dense(8, "relu"), keras.layers.Dropout(0.5), keras.layers.Dense(3)]
    )


def normalised() -> keras.Model:
    model = keras.Sequential([keras.Input([6]), keras.layers.BatchNormalization(), keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    model.fit(X * 3 + 1, X[:, :3], verbose=0)
    return model


def two_in_two_out() -> keras.Model:
    a, b = keras.Input([6], name="a"), keras.Input([6], name="b")
    both = keras.layers.Concatenate()([a, b])
    return keras.Model(
        {"a": a, "b": b}, {"sum": keras.layers.Dense(2)(both), "flag": keras.layers.Dense(1)(a)}
    )


def listed() -> keras.Model:
    a, b = keras.Input([6]), keras.Input([6])
    return keras.Model([a, b], [keras.layers.Dense(2)(a), keras.layers.Add()([a, b])])


@keras.saving.register_keras_serializable()
class RowMixer(keras.Model):
    """Not built before it is called, and each row's output depends on its batch."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(3)
        self.scale = 1.0

    def call(self, x: Any) -> Any:
        return tf.cast(self.dense(x), "float32") * self.scale + tf.reduce_mean(x)


class SumOfRow(keras.Model):
    def call(self, x: Any) -> Any:
        return tf.reduce_sum(x, axis=1)


class OwnStep(RowMixer):
    def predict_step(self, data: Any) -> Any:
        x, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        return tf.nn.softmax(self(x, training=False)), tf.reduce_max(x)


def text() -> keras.Model:
    vectorize = keras.layers.TextVectorization(20, output_sequence_length=4)
    vectorize.adapt(["a b c d"])
    inputs = keras.Input([], dtype="string")
    return keras.Model(inputs, keras.layers.Flatten()(keras.layers.Embedding(20, 3)(vectorize(inputs))))


def sequences() -> keras.Model:
    inputs = keras.Input([None, 2])
    return keras.Model(inputs, keras.layers.LSTM(4)(inputs))


def stateful() -> keras.Model:
    inputs = keras.Input(batch_shape=(10, 5, 2))
    return keras.Model(inputs, keras.layers.SimpleRNN(3, stateful=True)(inputs))


class Squares(keras.utils.PyDataset):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        return (X[index * 20 : (index + 1) * 20],)


def generator() -> Iterator[Any]:
    for start in (0, 32, 64):
        yield (X[start : start + 32],)


def dataset(batch: int = 16) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(X).batch(batch)


CASES: dict[str, tuple[Callable[[], keras.Model], Callable[[], Any], dict[str, Any]]] = {
    "uneven last batch": (dense, lambda: X, {}),
    "even batches": (dense, lambda: X[:64], {}),
    "one row": (dense, lambda: X[:1], {}),
    "one batch": (dense, lambda: X, {"batch_size": 100}),
    "steps without a batch size": (dense, lambda: X, {"steps": 4}),
    "some steps of the rows": (dense, lambda: X, {"steps": 2, "batch_size": 10}),
    "batch norm": (normalised, lambda: X, {}),
    "float64": (dense, lambda: X.astype("float64"), {}),
    "integers": (dense, lambda: np.arange(12).reshape(2, 6), {}),
    "a tensor": (dense, lambda: tf.constant(X), {"batch_size": 9}),
    "dicts in and out": (two_in_two_out, lambda: {"b": X, "a": X + 1}, {}),
    "lists in and out": (listed, lambda: [X, X * 2], {"batch_size": 7}),
    "a model that mixes rows": (RowMixer, lambda: X, {"batch_size": 8}),
    "own predict_step with a scalar": (OwnStep, lambda: X, {"batch_size": 8}),
    "strings": (text, lambda: WORDS, {"batch_size": 8}),
    "one string": (text, lambda: np.array(["b c"], dtype=object), {}),
    "a string tensor": (text, lambda: tf.constant(WORDS), {}),
    "stateful": (stateful, lambda: STEPS, {"batch_size": 10}),
    "dataset": (dense, dataset, {}),
    "dataset of pairs": (dense, lambda: tf.data.Dataset.zip(dataset(), dataset()), {}),
    "endless dataset": (dense, lambda: dataset().repeat(), {"steps": 7}),
    "dataset of unknown length": (dense, lambda: dataset().filter(lambda x: True), {}),
    "PyDataset": (dense, Squares, {}),
    "generator": (dense, generator, {}),
    "generator, some steps": (dense, generator, {"steps": 2}),
    "ragged": (SumOfRow, lambda: tf.ragged.constant([[1.0], [2.0, 3.0], [], [4.0]]), {"batch_size": 2}),
    "sparse": (dense, lambda: tf.sparse.from_dense(X), {}),
    "lengths differ from batch to batch": (
        lambda: keras.Sequential([keras.Input([None, 2]), keras.layers.LSTM(3, return_sequences=True)]),
        lambda: tf.data.Dataset.from_generator(
            lambda: (np.ones((2, n, 2), "float32") for n in (3, 5)),
            output_signature=tf.TensorSpec([2, None, 2]),
        ),
        {},
    ),
}


def assert_same(ours: Any, theirs: Any) -> None:
    tf.nest.assert_same_structure(theirs, ours)
    for mine, expected in zip(tf.nest.flatten(ours), tf.nest.flatten(theirs), strict=True):
        assert type(mine) is type(expected)
        if isinstance(expected, np.ndarray):
            assert mine.dtype == expected.dtype
            np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_same_arrays_as_keras(case: str) -> None:
    make_model, make_x, options = CASES[case]
    model = make_model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras warns at the end of any generator
        theirs = model.predict(make_x(), verbose=0, **options)
        for layer in model.layers:
            if isinstance(layer, keras.layers.RNN) and layer.stateful:
                layer.reset_state()
        ours = stoker.predict(model, make_x(), verbose=0, **options)
    assert_same(ours, theirs)


@pytest.mark.parametrize("case", ["uneven last batch", "a model that mixes rows", "generator", "strings"])
def test_the_work_is_not_handed_to_keras(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_model, make_x, options = CASES[case]
    model = make_model()
    monkeypatch.setattr(TensorFlowTrainer, "predict", None)
    assert len(stoker.predict(model, make_x(), verbose=0, **options)) == len(
        X if case != "strings" else WORDS
    )


def test_a_fixed_width_string_array_is_taken_too() -> None:
    model = text()
    assert_same(stoker.predict(model, WORDS.astype(str)), model.predict(WORDS, verbose=0))


def test_a_dataset_without_a_batch_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing to predict: the data had no batch"):
        stoker.predict(dense(), tf.data.Dataset.from_tensor_slices(X[:0]).batch(8), verbose=0)


def test_an_empty_array_gives_an_empty_array() -> None:
    assert stoker.predict(dense(), X[:0]).shape == (0, 3)


# What was traced must never outlive what the model says now.


def test_new_weights_are_seen() -> None:
    model = dense()
    stoker.predict(model, X[:1])
    model.set_weights([weight * 2 + 1 for weight in model.get_weights()])
    assert_same(stoker.predict(model, X[:1]), model.predict(X[:1], verbose=0))
    model.compile("sgd", "mse")
    model.fit(X, X[:, :3], verbose=0)
    assert_same(stoker.predict(model, X[:1]), model.predict(X[:1], verbose=0))


def swap_layer(model: RowMixer) -> None:
    model._tracker.unlock()
    model.dense = keras.layers.Dense(3, kernel_initializer="ones")
    model._tracker.lock()


def set_attribute(model: RowMixer) -> None:
    model.scale = 3.0


def change_activation(model: RowMixer) -> None:
    model.dense.activation = tf.nn.softplus


def replace_step(model: RowMixer) -> None:
    model.predict_step = lambda data: model(data) * 7.0


def use_float16(model: RowMixer) -> None:
    model.dense.dtype_policy = keras.DTypePolicy("mixed_float16")


def quantize(model: RowMixer) -> None:
    model.dense.quantize("int8")


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [swap_layer, set_attribute, change_activation, replace_step, use_float16, quantize]
)
@pytest.mark.parametrize("rows", [1, 70])
def test_a_changed_model_is_traced_again(change: Callable[[Any], None], rows: int) -> None:
    model = RowMixer()
    before = stoker.predict(model, X[:rows], verbose=0)
    change(model)
    after = stoker.predict(model, X[:rows], verbose=0)
    assert np.abs(after - before).max() > 0
    model.make_predict_function(force=True)  # Keras keeps what it traced before the change
    assert_same(after, model.predict(X[:rows], verbose=0))


def test_a_layer_added_or_popped_is_seen() -> None:
    model = dense()
    assert stoker.predict(model, X[:1]).shape == (1, 3)
    model.add(keras.layers.Dense(5))
    assert stoker.predict(model, X[:1]).shape == (1, 5)
    model.pop()
    model.pop()
    assert stoker.predict(model, X[:1]).shape == (1, 8)


def test_training_between_predictions_traces_nothing_again() -> None:
    model = dense()
    model.compile("adam", "mse")
    stoker.predict(model, X[:1])
    before = traces_of(model)
    model.fit(X, X[:, :3], epochs=2, verbose=0)
    model.evaluate(X, X[:, :3], verbose=0)
    model.predict(X, verbose=0)
    stoker.predict(model, X[:2])
    assert traces_of(model) is before


def test_no_number_of_rows_or_length_adds_a_trace() -> None:
    model = sequences()
    for rows in range(1, 8):
        for length in (3, 5, 8):
            x: Any = np.ones((rows, length, 2), "float32")
            assert stoker.predict(model, x, batch_size=4, verbose=0).shape == (rows, 4)
    assert len(traces_of(model).functions) == 2  # a single row, and any number of rows


def test_a_model_that_is_dropped_is_freed() -> None:
    model = dense()
    stoker.predict(model, X, verbose=0)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_a_model_saves_and_copies_as_before(tmp_path: Path) -> None:
    model = dense()
    expected = stoker.predict(model, X[:1])
    model.save(tmp_path / "m.keras")
    model.export(tmp_path / "exported", verbose=False)
    assert_same(stoker.predict(keras.models.load_model(tmp_path / "m.keras"), X[:1]), expected)
    other = keras.models.clone_model(model)
    assert np.abs(stoker.predict(other, X[:1]) - expected).max() > 0


def test_threads_share_a_model() -> None:
    model = dense()
    expected = model.predict(X, verbose=0)
    found: dict[int, Any] = {}

    def work(row: int) -> None:
        found[row] = stoker.predict(model, X[row : row + 1])[0]

    threads = [threading.Thread(target=work, args=(row,)) for row in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose([found[row] for row in range(8)], expected[:8], rtol=1e-5, atol=1e-6)


# Callbacks and the bar.


class Notes(keras.callbacks.Callback):
    def __init__(self, stop_after: int = 99) -> None:
        super().__init__()
        self.calls: list[Any] = []
        self.stop_after = stop_after

    def on_predict_begin(self, logs: Any = None) -> None:
        self.calls.append("begin")

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.calls.append(batch)

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        self.calls.append((batch, np.shape(logs["outputs"])))
        if batch == self.stop_after:
            self.model.stop_predicting = True

    def on_predict_end(self, logs: Any = None) -> None:
        self.calls.append("end")


@pytest.mark.slow
@pytest.mark.parametrize("stop_after", [99, 1])
@pytest.mark.parametrize("per_execution", [1, 2])
@pytest.mark.parametrize("data", ["rows", "dataset", "dataset of unknown length"])
def test_batch_hooks_are_called_as_by_keras(stop_after: int, per_execution: int, data: str) -> None:
    model, ours, theirs = dense(), Notes(stop_after), Notes(stop_after)
    model.compile(steps_per_execution=per_execution)
    dataset = tf.data.Dataset.from_tensor_slices(X).batch(30)
    unknown = dataset.filter(lambda x: tf.shape(x)[0] > 0)
    x = {"rows": X, "dataset": dataset, "dataset of unknown length": unknown}[data]
    expected = model.predict(x, verbose=0, callbacks=[theirs])
    assert_same(stoker.predict(model, x, verbose=0, callbacks=[ours]), expected)
    assert ours.calls == theirs.calls


def test_a_short_dataset_traces_one_function_and_a_loop_when_it_pays() -> None:
    model = dense()
    dataset = tf.data.Dataset.from_tensor_slices(X).batch(8)
    one_batch, batches = dataset.take(1), len(dataset)
    assert_same(stoker.predict(model, one_batch, verbose=0), model.predict(one_batch, verbose=0))
    (function,) = traces_of(model).functions.values()
    assert not function.has_loop("stream")
    for _ in range(1 + 32 // batches):
        assert_same(stoker.predict(model, dataset, verbose=0), model.predict(dataset, verbose=0))
    assert function.has_loop("stream")
    assert list(traces_of(model).functions.values()) == [function]


@pytest.mark.parametrize("data", ["rows", "dataset"])
def test_steps_are_whole_executions_as_by_keras(data: str) -> None:
    model = dense()
    model.compile(steps_per_execution=2)
    dataset = tf.data.Dataset.from_tensor_slices(X).batch(8)
    x: Any = X if data == "rows" else dataset
    options: dict[str, Any] = {"batch_size": 8} if data == "rows" else {}
    expected = model.predict(x, verbose=0, steps=3, **options)
    assert len(expected) == 32
    assert_same(stoker.predict(model, x, verbose=0, steps=3, **options), expected)


def test_the_bar_is_keras_bar(capsys: pytest.CaptureFixture[str]) -> None:
    stoker.predict(dense(), X, verbose=1)
    assert "3/3" in capsys.readouterr().out
    stoker.predict(dense(), X[:1])
    assert capsys.readouterr().out == ""


# What Keras has to run itself, and what nobody can run.


def test_eager_models_and_strategies_go_to_keras() -> None:
    model = dense()
    model.compile(run_eagerly=True)
    assert_same(stoker.predict(model, X, verbose=0), model.predict(X, verbose=0))
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        model = dense()
    assert_same(stoker.predict(model, X, verbose=0), model.predict(X, verbose=0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: stoker.predict("model", X), "takes a keras.Model first, got str"),
        (lambda model: stoker.predict(model, X, batch_size=0), "batch_size must be 1 or more, got 0"),
        (lambda model: stoker.predict(model, X, steps=-1), "steps must be 1 or more, got -1"),
        (lambda model: stoker.predict(model, np.float32(3)), "pass x\\[None\\]"),
    ],
)
def test_what_makes_no_sense_is_said(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(StokerError, match=message):
        call(dense())


def test_steps_beyond_the_data_warn() -> None:
    with pytest.warns(UserWarning, match="ended after 5 of 9 steps"):
        assert len(stoker.predict(dense(), dataset(), steps=9, verbose=0)) == 70
