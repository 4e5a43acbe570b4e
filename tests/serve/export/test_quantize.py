"""Quantised bundles: never further from float than the bound, or nothing is left and one line says why."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("ai_edge_litert")

import stoker
from stoker.cli import main
from stoker.errors import ArgumentError
from stoker.serve.bundle import SIGNATURE, BundleError
from stoker.serve.engines.converted import allowed_of
from stoker.serve.export.quantized_files import Quantization
from stoker.serve.export.quantizing import QuantizationReport, Quantized, describe, quantize
from stoker.serve.proof import describe_difference
from stoker.serve.signature import Array, Field


def mlp() -> keras.Model:
    keras.utils.set_random_seed(1)
    x = given = keras.Input((40,), name="a")
    for width in (128, 128):
        x = keras.layers.Dense(width, activation="relu")(x)
    return keras.Model(given, keras.layers.Dense(10, activation="softmax", name="classes")(x))


def cnn() -> keras.Model:
    keras.utils.set_random_seed(1)
    x = given = keras.Input((16, 16, 3), name="a")
    for channels in (16, 32):
        x = keras.layers.Conv2D(channels, 3, activation="relu", padding="same")(x)
        x = keras.layers.MaxPooling2D()(x)
    return keras.Model(
        given, keras.layers.Dense(4, activation="softmax", name="out")(keras.layers.Flatten()(x))
    )


def uneven() -> keras.Model:
    """A network with a feature that is a thousand times the others, which 8 bits cannot hold together."""
    keras.utils.set_random_seed(1)
    x = given = keras.Input((40,), name="a")
    for width in (256, 128):
        x = keras.layers.Dense(width, activation="relu")(x)
    wide, last = keras.layers.Dense(64, activation="relu"), keras.layers.Dense(32, name="out")
    model = keras.Model(given, last(wide(x)))
    weights, after = wide.get_weights(), last.get_weights()
    weights[0][:, 0] *= 1e3
    after[0][0] = 0.0  # and whose value does not matter
    wide.set_weights(weights)
    last.set_weights(after)
    return model


def normal(count: int, *shape: int) -> Array:
    return np.random.default_rng(0).standard_normal((count, *shape)).astype("float32")


@contextlib.contextmanager
def saved(model: keras.Model) -> Iterator[tuple[Any, str, Field, Field]]:
    (tensor,), output = model.inputs, model.output_names[0]
    shape = tuple(tensor.shape[1:])
    served = tf.function(lambda a: {output: model(a, training=False)}, autograph=False)
    function = served.get_concrete_function(a=tf.TensorSpec([None, *shape], name="a"))
    module = tf.Module()
    module.weights = list(function.variables)
    with tempfile.TemporaryDirectory() as directory:
        tf.saved_model.save(module, directory, signatures={SIGNATURE: function})
        yield function, directory, Field("a", "float32", shape, "a"), Field("out", "float32", (None,), output)


def quantized(model: keras.Model, kind: str, bound: float, rows: Array) -> Quantized:
    with saved(model) as (function, directory, given, wanted):
        return quantize(function, directory, [given], [wanted], [rows[:3]], Quantization(kind, bound, [rows]))


@pytest.mark.slow
def test_a_cnn_is_quantised_whole_where_the_bound_allows_it() -> None:
    rows = np.abs(normal(60, 16, 16, 3))
    made = quantized(cnn(), "int8", 0.3, rows)
    report = made.report
    assert report["scheme"] == "weights and activations"
    assert report["float_layers"] == []
    assert report["held_out_rows"] == 33
    off, (plain, size) = report["off"], report["bytes"]
    assert 0 < off <= 0.3
    assert size == len(made.content) < 0.7 * plain
    # A bound between the two: ranges by row are closer to float.
    by_row = quantized(cnn(), "int8", 0.99 * off, rows).report
    assert by_row["scheme"] in ("weights, activations by row", "some layers")
    assert by_row["off"] < off


@pytest.mark.slow
def test_layers_that_8_bits_cannot_hold_stay_in_float() -> None:
    rows = normal(60, 40)
    made = quantized(uneven(), "int8", 0.1, rows)
    report = made.report
    assert report["scheme"] == "some layers"
    left, layers = report["float_layers"], report["layers"]
    assert 0 < len(left) < layers
    plain, size = report["bytes"]
    assert size < 0.7 * plain
    assert report["off"] <= 0.1
    assert f"{len(left)} of {layers} layers in float" in describe(report)


@pytest.mark.parametrize(
    ("given", "calibrating", "held_out"), [(20, 10, 10), (511, 256, 255), (2000, 256, 512)]
)
def test_every_second_row_calibrates_and_the_others_are_held_out_up_to_a_limit(
    given: int, calibrating: int, held_out: int
) -> None:
    asked = Quantization("int8", 0.01, [np.arange(given), np.arange(given) + 0.5])
    for rows, first, count in ((asked.calibration, 0, calibrating), (asked.held_out, 1, held_out)):
        one, other = rows
        assert one.tolist() == list(range(first, 2 * count, 2))
        assert other.tolist() == [number + 0.5 for number in one]


def test_the_report_says_whether_it_is_quicker() -> None:
    report: QuantizationReport = {
        "kind": "int8", "scheme": "weights and activations", "float_layers": [], "layers": 0, "off": 0.0042,
        "bound": 0.01,
        "allowed": {}, "held_out_rows": 100, "bytes": [409600, 102400], "times_quicker": [1.5, 2.25],
    }  # fmt: skip
    assert describe(report) == (
        "int8 (weights and activations): off by at most 0.0042 of an output's largest value (bound 0.01) on 100 "
        "held-out rows; 100 KiB instead of 400 KiB; 1.50x for one row, 2.25x for 32, compared with float on LiteRT"
    )
    report["times_quicker"] = [0.9, 1.05]
    slow = describe(report)
    assert slow.endswith("; no quicker than float here (0.90x for one row, 1.05x for 32)")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "bound"), [("int8", 1e-9), ("float16", 1e-9)])
def test_a_bound_that_cannot_be_kept_leaves_nothing(tmp_path: Path, kind: str, bound: float) -> None:
    with pytest.raises(BundleError, match=rf"{kind}: an answer is off by .*, and the bound is 1e-09"):
        stoker.export(mlp(), tmp_path / "bundle", quantize=kind, calibrate=normal(40, 40), bound=bound)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_from_a_file_to_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_STORE", "off")
    model, rows = mlp(), normal(120, 40)
    model.save("model.keras")
    np.save("rows.npy", rows)
    words = ["--int8", "--calibrate", "rows.npy", "--bound", "0.2", "--labels", ",".join("abcdefghij")]
    assert main(["export", "model.keras", "bundle", *words]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1].startswith("int8 (weights and activations): off by at most ")
    assert main(["bundle", "bundle", "--verify"]) == 0
    predictor = stoker.Predictor("bundle", engine="litert")
    allowed = allowed_of(predictor.bundle, "litert")
    answers, wanted = predictor.predict({"a": rows[1::2]}), model.predict(rows[1::2], verbose=0)
    assert np.abs(answers["classes"] - wanted).max() <= allowed["classes"] + 1e-6
    # Whole numbers are not float's: it is the quantised file that answers.
    assert np.abs(answers["classes"] - wanted).max() > 1e-4
    # The recorded rows are real ones, and no other engine may be that far off.
    field = Field("classes", "float32", (10,), "classes")
    assert describe_difference(field, answers["classes"], wanted, {}).startswith("is off by ")
    assert not describe_difference(field, answers["classes"], wanted, {}, allowed)


@pytest.mark.slow
def test_a_table_with_half_the_bits(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    lines = [
        f"{size:.2f},{rooms},{3 * size + rooms:.2f}"
        for size, rooms in zip(random.random(64), random.integers(1, 9, 64), strict=True)
    ]
    file = tmp_path / "homes.csv"
    file.write_text("\n".join(["size,rooms,price", *lines]) + "\n")
    train = stoker.data.csv(file, label="price", batch_size=16, cache=False)
    inputs = train.features.inputs()
    x = keras.layers.Dense(64, activation="relu")(train.features.encode(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1, name="guess")(x))
    cells = [dict(zip(("size", "rooms", "price"), line.split(","), strict=True)) for line in lines]
    made = stoker.export(model, tmp_path / "bundle", train, quantize="float16", calibrate=cells)
    report = made.description["engines"]["litert"]["quantized"]
    assert (report["kind"], report["bound"], report["held_out_rows"]) == ("float16", 0.01, 32 + 16)
    assert 0 < report["off"] <= 0.01
    known = stoker.Predictor(tmp_path / "bundle", engine="litert").predict(cells[0])
    assert known["guess"] == pytest.approx(
        stoker.Predictor(tmp_path / "bundle", engine="function").predict(cells[0])["guess"],
        abs=report["allowed"]["guess"],
    )


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"quantize": "int4"}, "quantize='int4' is not one of int8, float16"),
        ({"quantize": "int8"}, r"int8 needs 20 real rows .*: give calibrate= \(--calibrate FILE\)$"),
        ({"quantize": "int8", "calibrate": normal(19, 40)}, "int8 needs 20 real rows .*, got 19"),
        ({"quantize": "float16", "calibrate": normal(20, 40), "bound": 0.0}, "bound=0.0 must be more than 0"),
    ],
)
def test_what_is_asked_for_is_checked(tmp_path: Path, options: dict[str, Any], line: str) -> None:
    with pytest.raises(ArgumentError, match=line):
        stoker.export(mlp(), tmp_path / "bundle", **options)
    assert list(tmp_path.iterdir()) == []


def test_texts_need_tensorflow(tmp_path: Path) -> None:
    words = keras.layers.TextVectorization(vocabulary=["good", "bad"], output_sequence_length=4)
    text = keras.Input((), dtype="string", name="text")
    x = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(4, 4)(words(text)))
    model = keras.Model(text, keras.layers.Dense(1)(x))
    with pytest.raises(BundleError, match="engine 'litert' is not available: 'text' is text"):
        stoker.export(model, tmp_path / "bundle", quantize="int8", calibrate=np.array(["good"] * 20, object))
    assert list(tmp_path.iterdir()) == []
