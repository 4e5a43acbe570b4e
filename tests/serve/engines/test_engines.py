"""LiteRT and ONNX Runtime give the answers of TensorFlow, for any number of rows and callers, or are refused."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import stoker
from stoker.errors import ArgumentError
from stoker.serve.engines import choosing, converted
from stoker.serve.export import converting
from stoker.serve.proof import prove
from tests.serve.bundles import ENGINES, LABELS, rows
from tests.serve.forging import reseal
from tests.support import HANGS_S


@pytest.fixture(params=["litert", "onnx"])
def engine(request: pytest.FixtureRequest) -> str:
    """One that has a file of its own in the bundle."""
    name: str = request.param
    if name not in ENGINES:
        pytest.skip(f"{name} is not installed")
    return name


@pytest.fixture(autouse=True)
def _own_choices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "PLANS", tmp_path / "plans")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["xla", *ENGINES])
def test_its_answers_are_the_models(pets: tuple[keras.Model, Path], engine: str) -> None:
    predictor = stoker.Predictor(pets[1], engine=engine)
    assert (predictor.engine.name, predictor.engine.many) == (engine, engine)
    for count in (1, 2, 3, 255, 256, 257, 1000):
        given = rows(count, seed=count)
        found = predictor.predict(given)
        wanted = pets[0].predict(given, batch_size=1024, verbose=0)
        np.testing.assert_allclose(found["scores"], wanted, atol=1e-5)
        assert found["label"].tolist() == [LABELS[one] for one in found["scores"].argmax(-1)]
    one = predictor.predict({"numbers": [1, 2, 3, 4], "width": 2})
    assert one["label"] in LABELS
    assert one["scores"].shape == (3,)


def test_callers_that_meet_get_their_own(pets: tuple[keras.Model, Path], engine: str) -> None:
    run = stoker.Predictor(pets[1], engine=engine).run
    given = rows(200, seed=4)
    wanted = run([given["numbers"], given["width"]])[0]
    wrong: list[int] = []
    done: list[int] = []

    def ask(first: int) -> None:
        for row in range(first, 200, 4):
            size = row % 5 + 1
            part = [given["numbers"][row : row + size], given["width"][row : row + size]]
            if not np.allclose(run(part)[0], wanted[row : row + size], atol=1e-5):
                wrong.append(row)
            done.append(row)

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS_S)
    assert (len(done), wrong) == (200, [])


def test_the_choice_is_measured_told_and_remembered(pets: tuple[keras.Model, Path], tmp_path: Path) -> None:
    first = stoker.Predictor(pets[1]).engine
    assert first.figures is not None
    assert {"session", "function", *ENGINES} <= set(first.figures)
    assert first.row_seconds == min(one for one, _ in first.figures.values())
    assert str(first).startswith(f"engine {first.name}, ")
    assert "(measured: session " in str(first)
    (file,) = (tmp_path / "plans").iterdir()
    assert json.loads(file.read_text())["engine"] == first.name
    # What is remembered is taken without measuring; what is wrong there is not.
    file.write_text(json.dumps({"engine": "threads", "many": "function"}))
    again = stoker.Predictor(pets[1]).engine
    assert (again.name, again.many, again.figures) == ("threads", "function", None)
    for text in ("{", '{"engine": "quantum", "many": "session"}', "[]"):
        file.write_text(text)
        assert stoker.Predictor(pets[1]).engine.figures is not None


@pytest.mark.slow
def test_an_engine_with_other_answers_is_refused(
    pets: tuple[keras.Model, Path], engine: str, tmp_path: Path
) -> None:
    keras.utils.set_random_seed(8)
    numbers, width = keras.Input((4,), name="numbers"), keras.Input((), name="width", dtype="int32")
    x = keras.layers.Concatenate()([numbers, keras.ops.cast(width, "float32")[:, None]])
    output = keras.layers.Dense(3, activation="softmax")(x)
    other = keras.Model({"numbers": numbers, "width": width}, output)
    copy = shutil.copytree(pets[1], tmp_path / "copy")
    known = stoker.Predictor(pets[1], engine="session").bundle
    file = converted.FILES[engine]
    traced = converting_of(other, known)
    converting.convert(engine, traced, known.signature.inputs, converted.computed_outputs(known), copy / file)
    reseal(copy)
    with pytest.raises(stoker.BundleError, match=f"engine '{engine}' does not give the recorded answers"):
        stoker.Predictor(copy, engine=engine)
    # Measuring leaves it out, and the proof names it.
    measured = stoker.Predictor(copy).engine.figures
    assert measured is not None
    assert engine not in measured
    reseal(copy, lambda description: description.update(engines={engine: {"file": file}}))
    with pytest.raises(stoker.BundleError, match=f"^engine '{engine}': output 'output' is off by"):
        prove(copy)
    (copy / file).write_bytes(b"no model")
    reseal(copy)
    with pytest.raises(stoker.BundleError, match=f"{file} is damaged"):
        stoker.Predictor(copy, engine=engine)


def converting_of(model: keras.Model, known: Any) -> Any:
    from stoker.serve.export.graph import Traced
    from stoker.serve.export.intake import intake_of

    return Traced(model, intake_of(model, None, None), list(known.labels), True).concrete


def test_what_cannot_be_converted_is_one_line_and_leaves_nothing(tmp_path: Path, engine: str) -> None:
    word = keras.Input((), name="word", dtype="string")
    ids = keras.layers.StringLookup(vocabulary=["a", "b"])(word)
    model = keras.Model(word, keras.layers.Embedding(3, 2)(ids))
    with pytest.raises(
        stoker.BundleError, match=f"^engine '{engine}' is not available: 'word' is text"
    ) as caught:
        stoker.export(model, tmp_path / "bundle", engines=[engine])
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_operation_that_an_engine_lacks_is_named(tmp_path: Path, engine: str) -> None:
    number = keras.Input((), name="number", dtype="int64")
    ids = keras.layers.IntegerLookup(vocabulary=[7, 9])(number)
    model = keras.Model(number, keras.layers.Embedding(3, 2)(ids))
    with pytest.raises(stoker.BundleError, match=f"^engine '{engine}' is not available: ") as caught:
        stoker.export(model, tmp_path / "bundle", engines=[engine])
    assert "Lookup" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_bad_engines_are_one_line(tmp_path: Path, pets: tuple[keras.Model, Path]) -> None:
    with pytest.raises(ArgumentError, match="engine 'torch' is not one of litert, onnx"):
        stoker.export(pets[0], tmp_path / "bundle", engines=["torch"])
    bare = shutil.copytree(pets[1], tmp_path / "bare")
    reseal(bare, lambda description: description.pop("engines"))  # as an older export has it
    with pytest.raises(
        stoker.BundleError, match=r"has no model\.tflite: export it with engines=\['litert'\]"
    ):
        stoker.Predictor(bare, engine="litert")
    assert stoker.Predictor(bare).engine.name in ("session", "threads", "function")
