"""What a bundle must pass before it is loaded: by Predictor, by the server, by --verify. All go one way."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import stoker
from stoker import signing
from stoker.cli import main
from stoker.serve import bundle
from stoker.serve.safety.opening import Trust, open_bundle, sign_bundle
from tests.serve.bundles import LABELS, rows
from tests.serve.forging import reseal
from tests.serve.safety.graphs import edit, write_file
from tests.serve.safety.test_keras_files import with_code


@pytest.fixture
def copy(pets: tuple[keras.Model, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("stoker.serve.engines.choosing.PLANS", tmp_path / "plans")
    return Path(shutil.copytree(pets[1], tmp_path / "copy"))


def by_predictor(place: Path) -> str:
    try:
        stoker.Predictor(place, engine="session").predict(rows(2))
    except stoker.BundleError as error:
        return str(error)
    return ""


def by_server(place: Path) -> str:
    from tests.serve.http.asking import application

    try:
        application({"pets": place})
    except stoker.BundleError as error:
        return str(error)
    return ""


def by_verify(place: Path) -> str:
    from stoker.serve.proof import prove

    try:
        prove(place, lenient=True)
    except stoker.BundleError as error:
        return str(error)
    return ""


WAYS: list[Callable[[Path], str]] = [by_predictor, by_server, by_verify]


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_writes_a_file_is_refused_and_writes_none(
    copy: Path, tmp_path: Path, way: Callable[[Path], str]
) -> None:
    mark = tmp_path / "mark"
    edit(copy / "saved_model", write_file(mark))
    reseal(copy)
    line = way(copy)
    assert "has the operation WriteFile (node 'evil/WriteFile' of function" in line
    assert "--allow-ops WriteFile" in line
    assert "\n" not in line
    assert not mark.exists()


def test_allowed_by_name_it_answers(copy: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    edit(copy / "saved_model", write_file(mark))
    reseal(copy)
    answers = stoker.Predictor(copy, engine="function", allow_ops=["WriteFile"]).predict(rows(2))
    assert set(answers["label"]) <= set(LABELS)
    assert mark.read_text() == "written by a model"


def test_the_command_refuses_in_one_line(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(copy / "saved_model", write_file(tmp_path / "mark"))
    reseal(copy)
    assert main(["bundle", str(copy), "--verify"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "mark").exists()
    assert main(["bundle", str(copy), "--verify", "--allow-ops", "WriteFile"]) == 0
    assert (tmp_path / "mark").exists()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_verify_runs_no_code_of_the_keras_file(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = tmp_path / "mark"
    with_code(mark).save(copy / "model.keras")
    mark.unlink(missing_ok=True)
    reseal(copy)
    assert main(["bundle", str(copy), "--verify"]) == 0
    assert "model.keras is not loaded: Lambda 'shell' runs Python code" in capsys.readouterr().out
    assert not mark.exists()


@pytest.mark.parametrize("way", WAYS)
def test_the_weights_of_another_model_do_not_answer(copy: Path, way: Callable[[Path], str]) -> None:
    weights = copy / "saved_model" / "variables" / "variables.data-00000-of-00001"
    content = bytearray(weights.read_bytes())
    content[40] ^= 1
    weights.write_bytes(content)
    assert "variables.data-00000-of-00001 is not what was exported" in way(copy)


def test_the_keras_file_is_hashed_where_it_is_loaded(copy: Path) -> None:
    file = copy / "model.keras"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert by_predictor(copy) == ""
    assert "model.keras is not what was exported" in by_verify(copy)
    file.write_bytes(content[:-1])
    assert "model.keras is not what was exported" in by_predictor(copy)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "change",
    [
        lambda said: said["labels"].reverse(),
        lambda said: said["signature"]["inputs"][0].update(name="other"),
        lambda said: said["signature"]["outputs"].reverse(),
        lambda said: said.update(engines={}),
        lambda said: said.update(version=said["version"] + 1),
        lambda said: said["files"].popitem(),
    ],
)
def test_a_changed_description_does_not_answer(
    copy: Path, way: Callable[[Path], str], change: Callable[[dict[str, Any]], None]
) -> None:
    file = copy / bundle.DESCRIPTION
    description = json.loads(file.read_text())
    change(description)
    file.write_text(json.dumps(description))
    assert "bundle.json is not what was exported" in way(copy)


def test_spacing_and_order_are_no_change(copy: Path) -> None:
    file = copy / bundle.DESCRIPTION
    description = json.loads(file.read_text())
    file.write_text(json.dumps(dict(reversed(description.items()))))
    assert by_predictor(copy) == ""


def test_a_bundle_of_before_answers_and_says_what_is_not_covered(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = copy / bundle.DESCRIPTION
    description = json.loads(file.read_text())
    del description[bundle.SEAL]
    file.write_text(json.dumps(description))
    with pytest.warns(stoker.BundleWarning, match="no hash covers its labels"):
        predictor = stoker.Predictor(copy, engine="session")
    assert set(predictor.predict(rows(3))["label"]) <= set(LABELS)
    assert main(["bundle", str(copy)]) == 0
    assert "no hash covers its labels" in capsys.readouterr().out
    from tests.serve.http.asking import application

    _, said = application({"pets": copy})
    assert any("no hash covers its labels" in line for line in said)


def test_links_and_odd_files_are_refused(copy: Path, tmp_path: Path) -> None:
    weights = copy / "saved_model" / "variables" / "variables.index"
    outside = tmp_path / "outside"
    shutil.move(weights, outside)
    weights.symlink_to(outside)
    assert "holds the link saved_model/variables/variables.index" in by_predictor(copy)
    weights.unlink()
    os.mkfifo(weights)
    assert "variables.index, which is not a regular file" in by_predictor(copy)
    weights.unlink()
    assert "variables.index is missing" in by_predictor(copy)
    shutil.move(outside, weights)
    (copy / "saved_model" / "saved_model.pbtxt").write_text("")
    assert "saved_model.pbtxt was not exported with it" in by_predictor(copy)


def test_a_signature_is_demanded(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, other = tmp_path / "release.key", tmp_path / "other.key"
    assert main(["bundle", "--new-key", str(key)]) == 0
    public = signing.public_key(key)
    demanded = Trust.of(require_signature=public)
    with pytest.raises(stoker.BundleError, match="is not signed: sign it with stoker bundle"):
        open_bundle(copy, demanded)
    assert main(["bundle", str(copy), "--sign", str(key)]) == 0
    for place in (public, f"{key}.pub"):
        stoker.Predictor(copy, engine="session", require_signature=place).predict(rows(2))
        assert main(["bundle", str(copy), "--verify", "--require-signature", place]) == 0
    signing.generate_key(other)
    with pytest.raises(stoker.BundleError, match="is not signed with the key ed25519:"):
        stoker.Predictor(copy, require_signature=f"{other}.pub")
    # Whoever changes it cannot sign again; the old signature does not fit.
    seal = json.loads((copy / bundle.DESCRIPTION).read_text())[bundle.SEAL]
    reseal(copy, lambda said: said["labels"].reverse())
    description = json.loads((copy / bundle.DESCRIPTION).read_text())
    description[bundle.SEAL]["signature"] = seal["signature"]
    (copy / bundle.DESCRIPTION).write_text(json.dumps(description))
    with pytest.raises(stoker.BundleError, match="is not signed with the key"):
        open_bundle(copy, demanded)
    capsys.readouterr()
    assert main(["bundle", str(copy), "--require-signature", str(tmp_path / "none")]) == 2
    assert "Cannot read the public key" in capsys.readouterr().err


def test_the_server_demands_a_signature_too(copy: Path, tmp_path: Path) -> None:
    from stoker.serve.plane.models import ServedModels
    from tests.serve.http.asking import application

    app, _ = application({"pets": copy})
    app.models.close()
    key = tmp_path / "key"
    public = signing.generate_key(key)
    from dataclasses import replace

    settings = replace(app.models.settings, public_key=public)
    with pytest.raises(stoker.BundleError, match="is not signed"):
        ServedModels(settings, app.models.metrics, lambda line: None).load()
    sign_bundle(copy, key)
    models = ServedModels(settings, app.models.metrics, lambda line: None)
    models.load()
    models.close()


def test_export_signs(tmp_path: Path) -> None:
    key = tmp_path / "key"
    public = signing.generate_key(key)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    with pytest.raises(signing.SigningError, match="Cannot read the private key"):
        stoker.export(model, tmp_path / "bundle", sign=tmp_path / "none")
    stoker.export(model, tmp_path / "bundle", sign=key)
    with warnings.catch_warnings():
        warnings.simplefilter("error", stoker.BundleWarning)
        predictor = stoker.Predictor(tmp_path / "bundle", require_signature=public)
    assert predictor.predict(np.zeros((2, 3), "float32"))["output"].shape == (2, 1)


def test_a_table_from_a_vocabulary_file_is_exported_and_answers(tmp_path: Path) -> None:
    vocabulary = tmp_path / "cities.txt"
    vocabulary.write_text("rome\noslo\n")
    city = keras.Input((), dtype="string", name="city")
    known = keras.layers.StringLookup(vocabulary=str(vocabulary), output_mode="one_hot")(city)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stoker.BundleWarning)
        stoker.export(keras.Model(city, keras.layers.Dense(2)(known)), tmp_path / "bundle")
    vocabulary.unlink()
    assert list((tmp_path / "bundle" / "saved_model" / "assets").iterdir())
    for engine in ("session", "function"):
        answers = stoker.Predictor(tmp_path / "bundle", engine=engine).predict({"city": ["rome", "lima"]})
        assert not np.array_equal(answers["output"][0], answers["output"][1])


@pytest.mark.slow
def test_an_operation_of_the_users_own_is_exported_when_allowed(tmp_path: Path) -> None:
    import tensorflow as tf

    class Files(keras.layers.Layer):
        def call(self, names: Any) -> Any:
            return tf.map_fn(lambda one: tf.strings.length(tf.io.read_file(one)), names, tf.int32)

        def compute_output_spec(self, names: Any) -> Any:
            return keras.KerasTensor(names.shape, "int32")

    note = tmp_path / "note"
    note.write_text("four")
    name = keras.Input((), dtype="string", name="name")
    model = keras.Model(name, Files()(name))
    examples = {"name": np.array([str(note)] * 3, object)}
    with pytest.raises(stoker.BundleError, match=r"has the operation ReadFile .*--allow-ops ReadFile"):
        stoker.export(model, tmp_path / "bundle", examples=examples)
    assert not (tmp_path / "bundle").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stoker.BundleWarning)
        stoker.export(model, tmp_path / "bundle", examples=examples, allow_ops=["ReadFile"])
    predictor = stoker.Predictor(tmp_path / "bundle", engine="function", allow_ops=["ReadFile"])
    assert predictor.predict({"name": [str(note)]})["output"].tolist() == [4]
