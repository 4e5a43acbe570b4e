"""Features: statistics of the training rows only, inside the model, saved with it."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.data.layer_names import any_column_names, layer_names
from stoker.errors import ArgumentError
from tests.data.frames import mixed, rows_of
from tests.support import ROOT


@pytest.fixture
def split(tmp_path: Path) -> Any:
    frame = mixed(800)
    frame.loc[::7, "weight"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    options: dict[str, Any] = {"shuffle": True, "seed": 3, "validation_split": 0.25}
    return (frame, *stoker.data.csv(tmp_path / "t.csv", label="kind", **options))


def test_means_and_variances_are_those_of_the_training_rows(split: Any) -> None:
    frame, train, held_out = split
    rows = rows_of(train)[0]["id"] - 2**60
    assert len(rows) == 600
    own = frame.iloc[rows]
    features = train.features
    assert held_out.features is features
    for name in ("weight", "count", "id"):
        assert features.mean(name) == pytest.approx(own[name].astype(float).mean(), rel=1e-9)
    assert features.variance("weight") == pytest.approx(
        own["weight"].astype(np.float32).var(ddof=0), rel=1e-5
    )
    exact = (own["id"] - 2**60).to_numpy(float).var()
    assert features.variance("id") == pytest.approx(exact, rel=1e-9)


def test_a_category_only_the_held_out_rows_have_is_unknown() -> None:
    values = np.array(["a"] * 90 + ["late"] * 10)
    train, held_out = stoker.data.frame({"c": values, "n": np.arange(100)}, validation_split=0.1)
    assert train.features["c"].vocabulary == ("[UNK]", "a")
    assert set(rows_of(held_out)[0]["c"]) == {0}


def test_the_vocabulary_goes_by_frequency_then_alphabet() -> None:
    dataset = stoker.data.frame({"c": ["b", "a", "z", "z"]})
    assert dataset.features["c"].vocabulary == ("[UNK]", "z", "a", "b")


def test_encoded_numbers_are_normalised_and_gaps_become_the_mean(split: Any) -> None:
    _, train, _ = split
    inputs = train.features.inputs()
    chosen = {name: inputs[name] for name in ("weight", "id")}
    encode = {name: train.features._encode_feature(train.features[name], chosen[name]) for name in chosen}
    model = keras.Model(chosen, [part for parts in encode.values() for part in parts])
    columns, _ = rows_of(train)
    weight, absent, ident = (np.asarray(out).ravel() for out in model({n: columns[n] for n in chosen}))
    assert np.array_equal(absent, np.isnan(columns["weight"]))
    assert np.allclose(weight[absent == 1], 0, atol=1e-5)
    assert weight.mean() == pytest.approx(0, abs=1e-4)
    assert ident.mean() == pytest.approx(0, abs=1e-3)
    assert ident.std() == pytest.approx(1, abs=1e-3)


def test_numbers_side_by_side_are_what_they_are_alone(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    # A column may have the name of a layer; one far from zero, or with gaps, is encoded by itself.
    columns: dict[str, Any] = {
        "features": random.normal(3, 2, 500).astype(np.float32),
        "float32_columns": random.normal(-1, 5, 500).astype(np.float32),
        "far": (1e7 + random.normal(size=500)).astype(np.float64),
        "gaps": np.where(np.arange(500) % 9 == 0, np.nan, random.normal(size=500)),
        "few": random.integers(0, 9, 500),
        "many": random.integers(-1000, 1000, 500),
    }
    train = stoker.data.frame(columns, batch_size=500)
    assert train.features["gaps"].missing == 56
    inputs = train.features.inputs()
    model = keras.Model(inputs, train.features.encode(inputs))
    model.save(tmp_path / "m.keras")
    (batch,) = train
    found = np.asarray(keras.models.load_model(tmp_path / "m.keras")(batch))
    for number, name in enumerate(["features", "float32_columns", "few", "many"]):
        values = columns[name].astype(np.float64)
        assert np.allclose(found[:, number], (values - values.mean()) / values.std(), atol=1e-4), name
    assert found.shape == (500, 7)
    assert np.isfinite(found).all()
    assert np.allclose(found.std(0)[:5], 1, atol=1e-2)


def test_texts_without_words_are_numbers(tmp_path: Path) -> None:
    texts = [f'"some words of line {number}"' if number % 3 else '""' for number in range(90)]
    lines = "".join(f"{text},{number % 2}\n" for number, text in enumerate(texts))
    (tmp_path / "t.csv").write_text("note,kind\n" + lines)
    train = stoker.data.csv(tmp_path / "t.csv", label="kind", types={"note": "text"})
    inputs = train.features.inputs()
    encoded = keras.Model(inputs, train.features.encode(inputs))
    given = {"note": np.array(["some words", "", "never seen", "..."], object)}
    found = np.asarray(encoded(_tensors(given)))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[1], found[3])


def test_a_model_trains_is_saved_and_serves_text(split: Any, tmp_path: Path) -> None:
    _, train, held_out = split
    keras.utils.set_random_seed(0)
    inputs = train.features.inputs()
    x = train.features.encode(inputs)
    model = keras.Model(inputs, keras.layers.Dense(len(train.class_names))(x))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = stoker.fit(model, train, validation_data=held_out, epochs=2, verbose=0)
    assert np.isfinite(history.history["val_loss"]).all()
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    columns, _ = rows_of(held_out)
    columns["note"] = np.array(columns["note"], dtype=object)
    expected = np.asarray(model(_tensors(columns)))
    assert np.array_equal(np.asarray(again(_tensors(columns))), expected)
    serving = train.features.serving_model(model)
    words = np.array(train.features["colour"].vocabulary, dtype=object)
    as_text = {**columns, "colour": words[columns["colour"]]}
    assert np.allclose(np.asarray(serving(_tensors(as_text))), expected, atol=1e-6)
    unseen = serving(_tensors({**as_text, "colour": np.full(len(expected), "never seen", object)}))
    unknown = model(_tensors({**columns, "colour": np.zeros(len(expected), np.int32)}))
    assert np.allclose(np.asarray(unseen), np.asarray(unknown), atol=1e-6)


def _tensors(columns: dict[str, Any]) -> dict[str, Any]:
    import tensorflow as tf

    return {
        name: tf.constant(value.tolist() if value.dtype == object else value)
        for name, value in columns.items()
    }


def test_features_are_shown_and_a_missing_input_is_named(split: Any) -> None:
    _, train, _ = split
    shown = repr(train.features)
    assert "colour" in shown
    assert "4 categories" in shown
    assert "3 classes" in shown
    with pytest.raises(ArgumentError, match="no input 'id'"):
        train.features.encode({})


def test_stoker_data_imports_neither_tensorflow_nor_pyarrow() -> None:
    program = "import sys, stoker; stoker.data; print(sorted({'tensorflow', 'pyarrow', 'numpy'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"


def _numbers(names: list[str]) -> Any:
    random = np.random.default_rng(0)
    return stoker.data.frame({name: random.normal(size=50).astype(np.float32) for name in names})


def test_any_column_name_makes_a_name_for_a_layer() -> None:
    names = ["é", "名前", " a ", "_x", "%", "", "x", "X", "a b", "a/b", "a_b", "a_b_9", "1st"]
    found = layer_names(names)
    assert len(set(found.values())) == len(names)
    assert all(re.fullmatch("[A-Za-z0-9][A-Za-z0-9_]*", one) for one in found.values())
    # Names that always could be a layer's stay what they were.
    assert layer_names(["age", "X1", "größe", "a b", "a_b"]) == {
        "age": "age",
        "X1": "X1",
        "größe": "gr__e",
        "a b": "a_b",
        "a_b": "a_b_4",
    }
    assert len(set(layer_names(["a_2", "a", "a_3", "a ", "a?"]).values())) == 5


def test_inputs_give_way_to_the_layers_of_the_model() -> None:
    train = _numbers(["answer", "answer_input", "dense", "dense_1", "stack", "cast", "age"])
    inputs = train.features.inputs(avoid={"answer", "dense"})
    assert inputs["age"].name == "age"
    assert inputs["answer_input"].name == "answer_input"
    x = keras.layers.Dense(2, name="dense_1")(train.features.encode(inputs))
    x = keras.layers.Dense(2, name="dense")(x)
    with any_column_names():
        model = keras.Model(inputs, keras.layers.Dense(1, name="answer")(x))
    (batch,) = train.take(1)
    assert model(batch).shape[-1] == 1


def test_a_column_may_be_called_as_a_layer_of_another() -> None:
    words = np.array(["a", "b"] * 25)
    gaps = np.where(np.arange(50) % 5 == 0, np.nan, np.arange(50))
    columns = {
        "c": words,
        "c_one_hot": words,
        "c_ids": words,
        "n": gaps,
        "n_column": gaps,
        "n_normalized": gaps,
    }
    train = stoker.data.frame(columns, batch_size=50)
    inputs = train.features.inputs()
    model = keras.Model(inputs, train.features.encode(inputs), name="n")
    (batch,) = train
    texts = {name: tf.constant(words) if name.startswith("c") else batch[name] for name in columns}
    served = train.features.serving_model(model)(texts)
    assert np.array_equal(np.asarray(served), np.asarray(model(batch)))


def test_a_serving_model_is_made_without_a_warning_of_names() -> None:
    train = _numbers(["amount due", "a/b", "größe"])
    inputs = train.features.inputs()
    with any_column_names():
        model = keras.Model(inputs, train.features.encode(inputs))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train.features.serving_model(model)
