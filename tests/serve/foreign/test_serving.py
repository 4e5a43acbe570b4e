"""SavedModels that Stoker did not export, asked over HTTP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("orjson")
pytest.importorskip("uvicorn")

from stoker.serve.bundle import BundleError
from stoker.serve.foreign.loading import load_saved_model
from stoker.serve.foreign.warming import REQUESTS, time_and_try_joining
from stoker.serve.grpc.messages import serving_message
from stoker.serve.http.app import App
from stoker.serve.plane.model_config import read_config, sources_of
from stoker.serve.plane.models import ModelSource
from stoker.serve.plane.settings import VersionPolicy
from tests.serve.foreign.models import save, save_doubling, save_reader
from tests.serve.http.asking import Answer, application, ask


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("half") / "model")


@pytest.fixture(scope="module")
def served(saved: Path) -> Iterator[tuple[App, list[str]]]:
    app, said = application({"half": saved})
    yield app, said
    app.models.close()


def post(app: App, verb: str, body: Any, model: str = "half") -> Answer:
    return asyncio.run(ask(app, "POST", f"/v1/models/{model}:{verb}", body))


def get(app: App, path: str) -> Any:
    return asyncio.run(ask(app, "GET", path)).json()


def test_rows_and_columns(served: tuple[App, list[str]]) -> None:
    app, _ = served
    assert post(app, "predict", {"instances": [[2.0], [4]]}).json() == {"predictions": [[3.0], [4.0]]}
    assert post(app, "predict", {"instances": [{"x": [2.0]}]}).json() == {"predictions": [[3.0]]}
    assert post(app, "predict", {"inputs": [[2.0]]}).json() == {"outputs": [[3.0]]}
    assert post(app, "predict", {"inputs": {"x": [[2.0]]}}).json() == {"outputs": [[3.0]]}


def test_every_signature_answers(served: tuple[App, list[str]]) -> None:
    app, _ = served

    def predict(name: str, **body: Any) -> Any:
        return post(app, "predict", {"signature_name": name, **body}).json()

    assert predict("center", instances=[1.0, 3.0]) == {"predictions": [-1.0, 1.0]}
    assert predict("scalar", inputs=2.0) == {"outputs": 3.0}
    assert predict("scalar", inputs={"x": 2}) == {"outputs": 3.0}
    # Bytes come as base64 where the output's name says so.
    answered = predict("reverse", instances=[{"b64": "YWI="}, {"b64": "/w=="}])
    assert answered["predictions"][0] == {"words_bytes": {"b64": "YWIh"}, "length": 2}
    assert answered["predictions"][1] == {"words_bytes": {"b64": "/yE="}, "length": 1}


def test_examples_are_classified_and_regressed(served: tuple[App, list[str]]) -> None:
    app, _ = served
    body = {"signature_name": "classify", "context": {"x": 1.0}, "examples": [{"x": 2.0}, {}]}
    assert post(app, "classify", body).json() == {
        "results": [[["small", -2.0], ["large", 2.0]], [["small", -1.0], ["large", 1.0]]]
    }
    body = {"signature_name": "regress", "examples": [{"x": 2.0}, {"x": [4.0]}]}
    assert post(app, "regress", body).json() == {"results": [3.0, 4.0]}


@pytest.mark.parametrize(
    ("verb", "body", "line"),
    [
        ("predict", {"instances": [[1.0]], "signature_name": "no"}, 'Serving signature key "no" not found; the'),
        ("predict", {"instances": [["a"]]}, "'x': expected float32, got 'a'"),
        ("predict", {"instances": [[None]]}, "'x': expected float32, got null"),
        ("predict", {"instances": [[2.0], [True]]}, "'x': expected float32, got True"),
        ("predict", {"instances": [{"z": 1}]}, "row 1 has no value for 'x'"),
        ("predict", {"signature_name": "count", "inputs": {"x": 1}}, "there is no input 'x'"),
        ("predict", {"inputs": 1.0, "instances": [1]}, 'either "instances" (rows) or "inputs"'),
        ("classify", {"examples": [{"x": 1.0}]}, "signature 'serving_default' does not classify"),
        ("regress", {"examples": [{"x": 1.0}], "signature_name": "classify"}, "does not regress"),
        ("regress", {"examples": [{"x": [1.0, "a"]}], "signature_name": "regress"}, "'x' must be numbers or strings"),
        ("regress", {"examples": [{"x": "a"}], "signature_name": "regress"}, "the model cannot take these inputs"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(
    served: tuple[App, list[str]], verb: str, body: Any, line: str
) -> None:
    answer = post(served[0], verb, body)
    assert answer.status == 400, answer.body
    assert line in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


def test_declared_sizes_are_checked(tmp_path: Path) -> None:
    app, _ = application({"half": save_doubling(tmp_path / "m")})

    def predict(name: str, given: Any) -> tuple[int, Any]:
        answer = post(app, "predict", {"signature_name": name, "inputs": given})
        return answer.status, answer.json().get("outputs") or answer.json().get("error")

    assert predict("serving_default", [[1, 2], [3, 4]]) == (200, [[2.0, 4.0], [6.0, 8.0]])
    for given, shape in (
        ([[1, 2, 3]], "[1, 3]"),
        ([[1]], "[1, 1]"),
        ([1, 2], "[2]"),
        ([[[1, 2]]], "[1, 1, 2]"),
        (1, "[]"),
    ):
        line = f"'x': the model takes a tensor of shape [?, 2], got {shape}"
        assert predict("serving_default", given) == (400, line)
    assert predict("three", [[1], [2], [3]])[0] == 200
    assert predict("three", [[1], [2]])[0] == 400
    assert predict("anything", [[[1]]]) == (200, [[[2.0]]])
    tensor = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}
    answer = asyncio.run(ask(app, "POST", "/v2/models/half/infer", {"inputs": [tensor]}))
    assert (answer.status, "shape [?, 2], got [1, 3]" in answer.json()["error"]) == (400, True)
    app.models.close()


def test_a_row_for_each_instance_or_none(served: tuple[App, list[str]]) -> None:
    answer = post(served[0], "predict", {"instances": [], "signature_name": "count"})
    assert answer.status == 400
    scalar = post(served[0], "predict", {"signature_name": "count", "inputs": {}})
    assert scalar.status == 200


def test_metadata_is_the_models_own(served: tuple[App, list[str]]) -> None:
    found = get(served[0], "/v1/models/half/metadata")["metadata"]["signature_def"]["signature_def"]
    assert set(found) == {"serving_default", "center", "reverse", "count", "scalar", "classify", "regress"}
    info = found["serving_default"]["inputs"]["x"]
    assert info["dtype"] == "DT_FLOAT"
    assert info["name"] == "serving_default_x:0"
    assert info["tensor_shape"]["dim"] == [{"size": "-1", "name": ""}, {"size": "1", "name": ""}]
    assert get(served[0], "/v2/models/half")["inputs"] == [
        {"name": "x", "datatype": "FP32", "shape": [-1, 1]}
    ]
    assert get(served[0], "/try/half")["inputs"][0]["name"] == "x"


def test_requests_are_joined_only_where_it_makes_no_difference(saved: Path) -> None:
    app, said = application({"half": saved})
    signatures = app.models.version("half").signatures
    joins = {name: one.read_rows(_some(name)).joins for name, one in signatures.items()}
    assert joins == {
        "serving_default": True, "reverse": True,
        "center": False,  # an answer depends on the other rows
        "count": False, "scalar": False,  # no rows
        "classify": False, "regress": False,  # nobody knows what examples they take
    }  # fmt: skip
    assert any("answers requests together: " in line for line in said)
    # Nothing was tried on what keeps count.
    assert post(app, "predict", {"signature_name": "count", "inputs": {}}).json() == {"outputs": 1}


@pytest.mark.parametrize("rows", [3, 1])
def test_recorded_requests_that_cannot_be_joined_are_reported(
    saved: Path, caplog: pytest.LogCaptureFixture, rows: int
) -> None:
    def refuse(arrays: list[Any]) -> list[Any]:
        raise ValueError("one row at a time\nplease")

    loaded = {one.name: one for one in load_saved_model(saved, [])}
    signature = replace(loaded["serving_default"], run=refuse)
    asked = {"serving_default": [[np.ones((rows, 1), "float32")]]}
    assert time_and_try_joining(signature, asked) == (False, None)
    # From too few requests, the trial makes up its rows, which a model may refuse.
    assert [one.getMessage().rpartition(": ")[2] for one in caplog.records] == ["one row at a time"] * (
        rows == 3
    )


def _some(name: str) -> dict[str, Any]:
    known: dict[str, dict[str, Any]] = {
        "serving_default": {"x": np.ones((2, 1), "float32")}, "center": {"x": np.ones(2, "float32")},
        "reverse": {"text": np.array([b"a"], object)}, "count": {}, "scalar": {"x": np.float32(1)},
    }  # fmt: skip
    return known.get(name, {"inputs": np.array([b""], object)})


def test_joined_answers_are_each_ones_own(served: tuple[App, list[str]]) -> None:
    app, _ = served

    async def many() -> list[Answer]:
        bodies: list[Any] = [{"instances": [[float(number)]] * (1 + number % 3)} for number in range(40)]
        bodies[7] = {"instances": [float(7)]}  # a declared size of 1 may be left out
        return await asyncio.gather(*(ask(app, "POST", "/v1/models/half:predict", body) for body in bodies))

    for number, answer in enumerate(asyncio.run(many())):
        if number == 7:
            assert answer.json() == {"predictions": [5.5]}
        else:
            assert answer.json() == {"predictions": [[number / 2 + 2]] * (1 + number % 3)}


def write_requests(place: Path, *logs: Any) -> None:
    (place / REQUESTS).parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(place / REQUESTS)) as writer:
        for one in logs:
            writer.write(one.SerializeToString())


def test_the_requests_that_came_with_it_are_answered_first(tmp_path: Path) -> None:
    place = save(tmp_path / "half")
    counted, classified = serving_message("PredictionLog"), serving_message("PredictionLog")
    counted.predict_log.request.model_spec.signature_name = "count"
    request = classified.classify_log.request
    request.model_spec.signature_name = "classify"
    request.input.example_list.examples.add().features.feature["x"].float_list.value.append(1.0)
    write_requests(place, counted, counted, classified)
    app, _ = application({"half": place})
    assert post(app, "predict", {"signature_name": "count", "inputs": {}}).json() == {"outputs": 3}
    again, _ = application({"half": place}, warm_repeats=0)
    assert post(again, "predict", {"signature_name": "count", "inputs": {}}).json() == {"outputs": 1}
    counted.predict_log.request.model_spec.signature_name = "gone"
    write_requests(place, classified, counted)
    with pytest.raises(BundleError, match="does not answer request 2: no signature 'gone'"):
        application({"half": place})


def test_trust(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is not a bundle, and --trusted-only accepts nothing else"):
        application({"half": saved}, trusted_only=True)
    with pytest.raises(BundleError, match="--require-signature accepts nothing else"):
        application({"half": saved}, public_key="ed25519:AAAA")
    _, said = application({"reader": save_reader(tmp_path / "reader")})
    assert "reader: warning: it can reach outside the model, through ReadFile" in said


def test_versions_by_number_policy_and_label(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        save(tmp_path / f"{number:05}", plus=float(number))
    path = str(tmp_path)
    policies = {
        "newest": VersionPolicy(latest=1),
        "two": VersionPolicy(specific=(1, 3), labels={"canary": 3, "stable": 1}),
    }
    app, _ = application({"newest": tmp_path, "two": tmp_path, "all": Path(path)}, policies=policies)
    numbers = {name: [one.number for one in app.models.versions(name)] for name in app.models.names()}
    assert numbers == {"newest": [3], "two": [3, 1], "all": [3, 2, 1]}

    def plus(place: str) -> Any:
        found = asyncio.run(ask(app, "POST", f"/v1/models/{place}:predict", {"instances": [[0.0]]}))
        return found.json().get("predictions", found.status)

    assert plus("two/labels/stable") == [[1.0]]
    assert plus("two/labels/canary") == [[3.0]]
    assert plus("two/labels/other") == 404
    assert plus("all/versions/2") == [[2.0]]
    save(tmp_path / "4", plus=4.0)
    for name in app.models.names():
        app.models.refresh(name, app.models._sources[name])
    assert plus("newest") == [[4.0]]
    assert [one.number for one in app.models.versions("newest")] == [4]
    assert plus("two") == [[3.0]]


def test_the_list_of_models_is_replaced(tmp_path: Path) -> None:
    for name, plus in (("one", 1.0), ("two", 2.0)):
        save(tmp_path / name / "1", plus)
    file = tmp_path / "models.config"

    def write(*names: str) -> dict[str, ModelSource]:
        configs = "".join(f"config {{ name: '{name}', base_path: '{tmp_path / name}' }}\n" for name in names)
        file.write_text(f"model_config_list {{ {configs} }}")
        return read_config(str(file))

    app, said = application({"one": tmp_path / "one"}, model_config=str(file), model_config_poll_s=1.0)
    app.models.replace_sources(write("one", "two"))
    assert post(app, "predict", {"instances": [[0.0]]}, "two").json() == {"predictions": [[2.0]]}
    app.models.replace_sources(write("two"))
    assert post(app, "predict", {"instances": [[0.0]]}, "one").status == 404
    assert 'model="two",status="200"} 1' in asyncio.run(ask(app, "GET", "/metrics")).body.decode()
    with pytest.raises(BundleError):
        app.models.replace_sources(write("two", "three"))
    assert app.models.names() == ["two"]
    write("one")
    app.models._reread_config(())
    assert app.models.names() == ["one"]
    file.write_text("nonsense")
    app.models._reread_config(())
    assert app.models.names() == ["one"]
    assert "Error parsing text-format tensorflow.serving.ModelServerConfig" in said[-1]
    config = serving_message("ModelServerConfig")
    config.model_config_list.config.add(name="x", base_path="/x").model_version_policy.all.SetInParent()
    assert sources_of(config)["x"].policy == VersionPolicy()


def test_a_server_may_wait_for_its_models(tmp_path: Path) -> None:
    app, said = application({"half": tmp_path}, waits_for_models=True)
    assert "waiting for a version that works" in said[-1]
    assert asyncio.run(ask(app, "GET", "/readyz")).status == 503
    assert post(app, "predict", {"instances": [[0.0]]}).status == 404
    status = asyncio.run(ask(app, "GET", "/v1/models/half"))
    assert (status.status, status.json()) == (404, {"error": "model 'half' has no version that works yet"})
    made = save(tmp_path / ".1")
    os.rename(made, tmp_path / "1")
    app.models.refresh("half", app.models._sources["half"])
    assert asyncio.run(ask(app, "GET", "/readyz")).status == 200
    assert post(app, "predict", {"instances": [[0.0]]}).json() == {"predictions": [[2.0]]}


@pytest.mark.parametrize("kind", ["empty", "no signature", "damaged"])
def test_what_cannot_be_loaded_is_one_line(tmp_path: Path, kind: str) -> None:
    if kind == "no signature":
        tf.saved_model.save(tf.Module(), str(tmp_path / "m"))
    else:
        (tmp_path / "m").mkdir()
        (tmp_path / "m" / "saved_model.pb").write_bytes(b"" if kind == "empty" else b"\x07nonsense")
    with pytest.raises(BundleError) as caught:
        application({"m": tmp_path / "m"})
    assert "\n" not in str(caught.value)
