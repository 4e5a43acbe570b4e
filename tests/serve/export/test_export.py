"""Bundles of tables, texts and images: raw rows in, labels and scores out, the same in every process."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.cli import main
from stoker.data.layer_names import any_column_names
from stoker.errors import ArgumentError
from stoker.serve.export.faults import find_restless_layer
from stoker.serve.export.intake import intake_of
from stoker.serve.signature import Signature
from tests.data.frames import mixed


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))


def answers(path: Path, **inputs: Any) -> dict[str, Any]:
    function = tf.saved_model.load(str(path / "saved_model")).signatures["serving_default"]
    return {
        name: one.numpy() for name, one in function(**{k: tf.constant(v) for k, v in inputs.items()}).items()
    }


def over_rest(path: Path, instances: list[Any]) -> list[Any]:
    """What a client of TensorFlow Serving gets for raw rows."""
    from tests.serve.http.asking import application, ask

    app, _ = application({"m": path})
    found = asyncio.run(ask(app, "POST", "/v1/models/m:predict", {"instances": instances}))
    app.models.close()
    assert found.status == 200, found.body
    predictions: list[Any] = found.json()["predictions"]
    return predictions


@pytest.mark.slow
def test_a_table_takes_its_raw_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = mixed(200)
    frame.loc[::9, "weight"] = np.nan
    train = stoker.data.frame(frame.drop(columns=["note"]), label="kind", batch_size=200)
    inputs = train.features.inputs()
    model = keras.Model(inputs, keras.layers.Dense(3)(train.features.encode(inputs)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    model.fit(train, epochs=1, verbose=0)
    path = tmp_path / "bundle"
    made = stoker.export(model, path, features=train, lineage={"data": "mixed"})
    assert made.labels == ("cat", "dog", "eel")
    assert list(made.description["evaluation"]) == ["loss"]
    encoded = next(iter(train))[0]
    texts = [one.name for one in made.signature.inputs if one.dtype == "string"]
    assert "colour" in texts
    raw = {name: frame[name].to_numpy() if name in texts else encoded[name].numpy() for name in encoded}
    found = answers(path, **raw)
    predicted = model.predict(encoded, verbose=0)
    np.testing.assert_allclose(found["output"], predicted, atol=1e-4)
    np.testing.assert_allclose(found["scores"].sum(-1), 1, atol=1e-5)
    assert found["label"].tolist() == [made.labels[one].encode() for one in predicted.argmax(-1)]
    # Raw rows from the frame itself, and vocabularies in a session.
    predictor = stoker.Predictor(path)
    assert predictor.predict(frame)["label"].tolist() == [one.decode() for one in found["label"]]
    for engine in ("session", "function"):
        scores = stoker.Predictor(path, engine=engine).predict(frame)["scores"]
        np.testing.assert_allclose(scores, found["scores"], atol=1e-5)
    with pytest.raises(stoker.BundleError, match=r"engine 'xla' cannot run .*: it lacks an operation"):
        stoker.Predictor(path, engine="xla")
    plain = json.loads(frame[[one.name for one in made.signature.inputs]].head(20).to_json(orient="records"))
    assert [one["label"] for one in over_rest(path, plain)] == [one.decode() for one in found["label"][:20]]
    # The command shows it, and verifies it; a changed file is found.
    assert main(["bundle", str(path), "--verify"]) == 0
    shown = capsys.readouterr().out
    assert "colour string  (category)" in shown
    assert "the answers to 5 examples are those recorded" in shown
    (path / "model.keras").write_bytes(b"")
    assert main(["bundle", str(path), "--verify"]) == 2
    assert "model.keras is not what was exported" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_null_is_what_was_missing_in_training_whatever_the_file(tmp_path: Path, form: str) -> None:
    """A CSV file has the empty text for it, which is a category; JSON lines have null, which is none."""
    file = tmp_path / f"rows.{form}"
    cities = ["Rome", "Oslo", None] * 20
    if form == "csv":
        file.write_text("city,gone\n" + "".join(f"{one or ''},{int(one is None)}\n" for one in cities))
    else:
        file.write_text("".join(json.dumps({"city": one, "gone": int(one is None)}) + "\n" for one in cities))
    train = getattr(stoker.data, form)(str(file), label="gone", batch_size=60)
    inputs = train.features.inputs()
    model = keras.Model(inputs, keras.layers.Dense(1)(train.features.encode(inputs)))
    made = stoker.export(model, tmp_path / "bundle", features=train)
    rows, gone = next(iter(train))
    wanted = model.predict(rows, verbose=0)[gone.numpy().argmax(), 0]
    told = over_rest(tmp_path / "bundle", [{"city": None}, {"city": ""}])
    assert np.ravel(told) == pytest.approx([wanted, wanted], abs=1e-5)
    # Only where it must be said is it said: other bundles are read by versions that do not know of it.
    (said,) = made.description["signature"]["inputs"]
    assert ("missing" in said) == (form == "csv")
    assert made.signature == Signature.from_json(made.signature.to_json())


@pytest.mark.slow
def test_columns_may_be_called_anything(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    random = np.random.default_rng(0)
    names = ["é", "名前", " spaced ", "_x", "%", "", "x", "X", "a/b", "1st", "class", "self"]
    frame: dict[str, Any] = {name: random.normal(size=60).astype(np.float32) for name in names}
    frame |= {"_c": random.choice(["a", "b"], 60), "_C": random.choice(["a", "b"], 60)}
    train = stoker.data.frame(
        {**frame, "y": random.normal(size=60).astype(np.float32)}, label="y", batch_size=60
    )
    inputs = train.features.inputs()
    with any_column_names():
        model = keras.Model(inputs, keras.layers.Dense(1)(train.features.encode(inputs)))
    made = stoker.export(model, tmp_path / "bundle", features=train)
    # Neither Keras nor TensorFlow has had to warn of a name.
    assert "not a valid" not in caplog.text
    assert [one.name for one in made.signature.inputs] == list(frame)
    assert made.description["keras"]["fault"] is None
    predicted = model.predict(next(iter(train))[0], verbose=0)
    rows = [{name: column[row].item() for name, column in frame.items()} for row in range(5)]
    found = stoker.Predictor(tmp_path / "bundle").predict(rows)["output"]
    np.testing.assert_allclose(found, predicted[:5], atol=1e-5)
    np.testing.assert_allclose(over_rest(tmp_path / "bundle", rows), predicted[:5], atol=1e-5)


@pytest.mark.slow
def test_texts_are_taken_as_text(tmp_path: Path) -> None:
    for name, words in (("good", "fine nice sun"), ("bad", "rain cold mud")):
        (tmp_path / "texts" / name).mkdir(parents=True)
        for number in range(6):
            (tmp_path / "texts" / name / f"{number}.txt").write_text(f"{words} number {number}")
    train = stoker.data.text(tmp_path / "texts", max_tokens=50, max_length=4)
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int64"),
            keras.layers.Embedding(50, 4, mask_zero=True),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    made = stoker.export(model, tmp_path / "bundle", features=train)
    assert [str(one) for one in made.signature.inputs] == ["text string"]
    assert made.description["keras"]["fault"] is None
    texts = ["nice sun today and for ever", "mud"]
    found = answers(tmp_path / "bundle", text=texts)
    for row, text in enumerate(texts):
        predicted = model.predict(train.vectorization(tf.constant([text]))[:, :4], verbose=0)[0, 0]
        assert found["scores"][row] == pytest.approx([1 - predicted, predicted], abs=1e-4)
        assert found["label"][row] == made.labels[int(predicted > 0.5)].encode()  # type: ignore[index]
    told = over_rest(tmp_path / "bundle", texts)
    assert [one["label"] for one in told] == [one.decode() for one in found["label"]]


def test_images_are_taken_as_bytes_and_the_command_exports_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(2):
            pixels = tf.cast(tf.random.uniform((6, 6, 3), 0, 255, seed=number), tf.uint8)
            tf.io.write_file(str(tmp_path / "images" / name / f"{number}.png"), tf.io.encode_png(pixels))
    train = stoker.data.images(tmp_path / "images", image_size=(6, 6))
    model = keras.Sequential(
        [
            keras.Input((6, 6, 3)),
            keras.layers.RandomFlip(),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Flatten(),
            keras.layers.Dense(2, activation="softmax", name="animal"),
        ]
    )
    taken = intake_of(model, train, None)
    assert [str(one) for one in taken.fields] == ["input uint8 [6, 6, 3]"]
    assert taken.labels == ["cat", "dog"]
    model.compile("adam", "sparse_categorical_crossentropy")
    model.save(tmp_path / "model.keras")
    path = tmp_path / "bundle"
    assert main(["export", str(tmp_path / "model.keras"), str(path), "--labels", "cat, dog"]) == 0
    assert "proven on 5 rows" in capsys.readouterr().out
    pixels = np.random.default_rng(1).integers(0, 255, (4, 6, 6, 3)).astype("float32")
    found = answers(path, input=pixels)
    np.testing.assert_allclose(found["animal"], model.predict(pixels, verbose=0), atol=1e-5)
    assert set(found["label"]) <= {b"cat", b"dog"}
    told = over_rest(path, pixels.astype(int).tolist())
    assert [one["label"] for one in told] == [one.decode() for one in found["label"]]
    # What is there is replaced only if asked to.
    assert main(["export", str(tmp_path / "model.keras"), str(path)]) == 2
    assert "exists; overwrite=True (--force) replaces it" in capsys.readouterr().err


def test_image_files_are_answered_as_the_images_of_training(tmp_path: Path) -> None:
    """Of any size, over every protocol; what is no image is one line."""
    from tests.serve.http.asking import application, ask

    files: list[bytes] = []
    for name, shape in (("cat", (6, 6, 3)), ("dog", (9, 14, 3)), ("eel", (20, 5, 1))):
        (tmp_path / "images" / name).mkdir(parents=True)
        pixels = tf.cast(tf.random.uniform(shape, 0, 255, seed=1), tf.uint8)
        files.append(tf.io.encode_png(pixels).numpy())
        (tmp_path / "images" / name / "0.png").write_bytes(files[-1])
    train = stoker.data.images(tmp_path / "images", image_size=(6, 6), batch_size=3)
    layers = [
        keras.layers.Rescaling(1 / 255),
        keras.layers.Flatten(),
        keras.layers.Dense(3, activation="softmax"),
    ]
    model = keras.Sequential([keras.Input((6, 6, 3), name="image"), *layers])
    path = tmp_path / "bundle"
    stoker.export(model, path, features=train)
    seen, classes = next(iter(train))
    wanted = model.predict(seen, verbose=0)[np.argsort(classes)]
    predictor = stoker.Predictor(path)
    field = predictor.bundle.signature.inputs[0].name
    np.testing.assert_allclose(predictor.predict({field: files})["scores"], wanted, atol=1e-5)
    np.testing.assert_allclose(predictor.predict(files[1])["scores"], wanted[1], atol=1e-5)
    sent = [{"b64": base64.b64encode(one).decode()} for one in files]
    for instances in (sent, [{field: one} for one in sent]):
        np.testing.assert_allclose([one["scores"] for one in over_rest(path, instances)], wanted, atol=1e-5)
    app, _ = application({"m": path})
    packed = b"".join(struct.pack("<I", len(one)) + one for one in files)
    tensor = {
        "name": field,
        "datatype": "BYTES",
        "shape": [3],
        "parameters": {"binary_data_size": len(packed)},
    }
    head = json.dumps({"inputs": [tensor], "outputs": [{"name": "scores"}]}).encode()
    length = str(len(head))
    asking = ask(app, "POST", "/v2/models/m/infer", head + packed, inference_header_content_length=length)
    (scores,) = asyncio.run(asking).json()["outputs"]
    np.testing.assert_allclose(np.reshape(scores["data"], (3, 3)), wanted, atol=1e-5)
    bad = {"instances": [sent[0], {"b64": base64.b64encode(b"no image").decode()}]}
    refused = asyncio.run(ask(app, "POST", "/v1/models/m:predict", bad))
    app.models.close()
    assert refused.status == 400
    assert (
        "row 2: b'no image' is not a valid image: send the bytes of an image file" in refused.json()["error"]
    )


class Dice(keras.layers.Layer):
    """Random also in predict."""

    def call(self, x: Any) -> Any:
        return x + keras.random.normal(keras.ops.shape(x))


class Doubled(keras.layers.Layer):
    def call(self, x: Any) -> Any:
        return 2 * x


class Rank(keras.layers.Layer):
    """Looks at all rows of the batch."""

    def call(self, x: Any) -> Any:
        return x - keras.ops.mean(x, axis=0, keepdims=True)


def around(layer: Any) -> keras.Model:
    inner = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3), layer], name="inner")
    entry = keras.Input((3,))
    return keras.Model(entry, keras.layers.Dense(2)(inner(entry)))


def refused(model: keras.Model, directory: Path, **options: Any) -> str:
    before = sorted(os.listdir(directory))
    with pytest.raises((stoker.BundleError, ArgumentError)) as caught:
        stoker.export(model, directory / "bundle", **options)
    assert sorted(os.listdir(directory)) == before, "something is left"
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_a_layer_that_never_rests_is_named(tmp_path: Path) -> None:
    line = refused(around(Dice(name="dice")), tmp_path)
    assert line.startswith("layer 'dice' (Dice) answers the same rows differently each time")
    assert find_restless_layer(around(Doubled()), np.ones((2, 3), "float32")) is None


def test_a_layer_that_runs_python_is_named(tmp_path: Path) -> None:
    layer = keras.layers.Lambda(
        lambda x: tf.ensure_shape(tf.numpy_function(np.sin, [x], tf.float32), [None, 3]), name="by_numpy"
    )
    assert "by_numpy" in refused(around(layer), tmp_path)


def test_a_layer_that_fails_is_named(tmp_path: Path) -> None:
    class Picky(keras.layers.Layer):
        fails = False

        def call(self, x: Any) -> Any:
            if self.fails:
                raise RuntimeError("only on Sundays\nand never twice")
            return x

    layer = Picky(name="picky")
    model = around(layer)
    layer.fails = True
    assert "layer 'picky' (Picky): RuntimeError: only on Sundays" in refused(model, tmp_path)


def test_a_model_that_mixes_rows_is_found_by_the_new_process(tmp_path: Path) -> None:
    line = refused(around(Rank()), tmp_path)
    assert "output 'output' is off by" in line
    assert "for row 1 alone: an answer depends on the other rows of its batch" in line


def test_wrong_arguments_are_one_line(tmp_path: Path) -> None:
    model = around(Doubled())
    assert refused(model, tmp_path, labels=["a", "b", "c"]) == (
        "labels: 3 names, but a row of 'output' has shape [2]"
    )
    assert "'input': a row has shape [3]" in refused(model, tmp_path, examples=[[1.0]])
    assert "give a dataset of stoker.data" in refused(model, tmp_path, features=3)
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "diary.txt").write_text("mine")
    assert "exists and is not a bundle" in refused(model, tmp_path, overwrite=True)

    class Own(keras.Model):
        def call(self, x: Any) -> Any:
            return x

    assert "does not say what it takes" in refused(Own(), tmp_path / "bundle")
    with pytest.raises(ArgumentError, match=r"takes a keras\.Model first, got int"):
        stoker.export(3, tmp_path / "x")


def test_names_do_not_depend_on_what_was_made_before(tmp_path: Path) -> None:
    class Own(keras.Model):
        """Subclassed: what it takes is what its examples are."""

        def __init__(self) -> None:
            super().__init__()
            self.layer, self.double = keras.layers.Dense(2), Doubled()

        def call(self, pair: Any, training: bool = False) -> Any:
            first, second = pair
            return self.layer(first), self.double(second)

    for _ in range(2):
        keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    path = tmp_path / "bundle"
    examples: Any = (np.ones((7, 3), "float32"), np.arange(7, dtype="float32")[:, None])
    with pytest.warns(stoker.BundleWarning, match="does not load by itself"):
        made = stoker.export(Own(), path, examples=examples)
    assert [one.name for one in made.signature.inputs] == ["input_1", "input_2"]
    assert [one.name for one in made.signature.outputs] == ["output_1", "output_2"]
    assert json.loads((path / "bundle.json").read_text())["examples"]["rows"] == 7
    one, three = keras.Input((3,)), keras.Input((3,), name="chosen")
    both = intake_of(keras.Model([one, three], one), None, None)
    assert [field.name for field in both.fields] == ["input_1", "chosen"]
