"""The protocols: what clients of TensorFlow Serving and Triton send is answered, and bad input is one line."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import re
import shutil
import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("uvicorn")
pytest.importorskip("orjson")

import stoker
from stoker.serve.http.app import App
from stoker.serve.plane.models import ModelSource
from tests.serve.bundles import LABELS, rows
from tests.serve.forging import reseal
from tests.serve.http.asking import Answer, application, ask
from tests.support import wait_until

PREDICT = "/v1/models/pets:predict"
INFER = "/v2/models/pets/infer"


@pytest.fixture(scope="module")
def bundle(pets: tuple[Any, Path]) -> Path:
    return pets[1]


@pytest.fixture(scope="module")
def app(bundle: Path) -> Iterator[App]:
    made, _ = application({"pets": bundle}, body_bytes=20_000, rows=50, string_bytes=100)
    yield made
    made.models.close()


def asked(app: App, method: str, path: str, body: Any = b"", **headers: str) -> Answer:
    return asyncio.run(ask(app, method, path, body, **headers))


def wanted(bundle: Path, count: int) -> Any:
    return stoker.Predictor(bundle).predict(rows(count))


def instances(count: int) -> list[dict[str, Any]]:
    given = rows(count)
    return [
        {"numbers": n.tolist(), "width": int(w)}
        for n, w in zip(given["numbers"], given["width"], strict=True)
    ]


def test_tensorflow_serving_in_rows_and_columns(app: App, bundle: Path) -> None:
    right = wanted(bundle, 3)
    found = asked(app, "POST", PREDICT, {"signature_name": "serving_default", "instances": instances(3)})
    assert found.status == 200
    predictions = found.json()["predictions"]
    assert [one["label"] for one in predictions] == right["label"].tolist()
    np.testing.assert_allclose([one["scores"] for one in predictions], right["scores"], atol=1e-5)
    columns = {name: array.tolist() for name, array in rows(3).items()}
    outputs = asked(app, "POST", PREDICT, {"inputs": columns}).json()["outputs"]
    np.testing.assert_allclose(outputs["scores"], right["scores"], atol=1e-5)


def test_classify_metadata_and_versions(app: App, bundle: Path) -> None:
    result = asked(app, "POST", "/v1/models/pets:classify", {"examples": instances(2)}).json()["result"]
    right = wanted(bundle, 2)
    assert [one[0][0] for one in result] == right["label"].tolist()
    assert sorted(word for word, _ in result[0]) == LABELS
    context = {"context": {"width": 1}, "examples": [{"numbers": [1, 2, 3, 4]}]}
    assert asked(app, "POST", "/v1/models/pets:classify", context).status == 200
    number = str(stoker.Predictor(bundle).bundle.version)
    status = asked(app, "GET", "/v1/models/pets").json()["model_version_status"]
    assert [one["version"] for one in status] == [number]
    said = asked(app, "GET", f"/v1/models/pets/versions/{number}/metadata").json()
    inputs = said["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"]
    assert inputs["width"]["dtype"] == "DT_INT32"
    assert [one["size"] for one in inputs["numbers"]["tensor_shape"]["dim"]] == ["-1", "4"]
    for place in (f"versions/{number}", "labels/stable"):
        assert (
            asked(app, "POST", f"/v1/models/pets/{place}:predict", {"instances": instances(1)}).status == 200
        )


def tensors(count: int, binary: bool) -> tuple[dict[str, Any], bytes]:
    given = rows(count)
    inputs, tail = [], b""
    for name, kind in (("numbers", "FP32"), ("width", "INT32")):
        one: dict[str, Any] = {"name": name, "datatype": kind, "shape": list(given[name].shape)}
        if binary:
            one["parameters"] = {"binary_data_size": given[name].nbytes}
            tail += given[name].tobytes()
        else:
            one["data"] = given[name].ravel().tolist()
        inputs.append(one)
    return {"id": "7", "inputs": inputs}, tail


def test_the_inference_protocol(app: App, bundle: Path) -> None:
    right = wanted(bundle, 3)
    body, _ = tensors(3, binary=False)
    found = asked(app, "POST", INFER, body).json()
    assert found["id"] == "7"
    outputs = {one["name"]: one for one in found["outputs"]}
    assert outputs["label"] == {
        "name": "label",
        "datatype": "BYTES",
        "shape": [3],
        "data": right["label"].tolist(),
    }
    np.testing.assert_allclose(np.reshape(outputs["scores"]["data"], (3, 3)), right["scores"], atol=1e-5)
    # Whole numbers where numbers are meant.
    body["inputs"][0] = {"name": "numbers", "datatype": "INT32", "shape": [3, 4], "data": list(range(12))}
    assert asked(app, "POST", INFER, body).status == 200
    said = asked(app, "GET", "/v2/models/pets").json()
    assert said["inputs"][1] == {"name": "width", "datatype": "INT32", "shape": [-1]}


@pytest.mark.parametrize(
    ("name", "changed", "line"),
    [
        ("numbers", {"data": [1, 2, 3, None]}, "'numbers': expected float32, got null"),
        ("numbers", {"data": [[1, 2, 3, True]]}, "'numbers': expected float32, got True"),
        ("width", {"data": [False], "datatype": "BOOL"}, "'width': expected int32, got False"),
    ],
)
def test_numbers_in_inference_tensors_are_neither_null_nor_booleans(
    app: App, name: str, changed: dict[str, Any], line: str
) -> None:
    body, _ = tensors(1, binary=False)
    body["inputs"] = [{**one, **(changed if one["name"] == name else {})} for one in body["inputs"]]
    found = asked(app, "POST", INFER, body)
    assert (found.status, found.json()["error"][: len(line)]) == (400, line)
    # Booleans elsewhere in the request are no values.
    body["inputs"], body["parameters"] = tensors(1, binary=False)[0]["inputs"], {"binary_data_output": False}
    assert asked(app, "POST", INFER, body).status == 200


@pytest.mark.parametrize(
    ("shape", "size", "line"),
    [
        ([10**9], 4, "1000000000 rows are too many; the limit is 50"),
        ([50, 10**9], 4, "takes 200000000000 bytes; the limit is 20000"),
        ([1, 2], 9, "expected 2 strings, each preceded by its length"),
        ([1, 2], True, "binary_data_size True exceeds"),
    ],
)
def test_binary_tensors_are_checked_before_there_is_room_for_them(
    app: App, shape: list[int], size: int, line: str
) -> None:
    one = {"name": "a", "datatype": "BYTES", "shape": shape, "parameters": {"binary_data_size": size}}
    head = json.dumps({"inputs": [one]}).encode()
    found = asked(app, "POST", INFER, head + bytes(size), inference_header_content_length=str(len(head)))
    assert found.status == 400
    assert line in found.json()["error"]


def test_binary_tensors(app: App, bundle: Path) -> None:
    right = wanted(bundle, 3)
    body, tail = tensors(3, binary=True)
    body["outputs"] = [
        {"name": "label", "parameters": {"binary_data": True}},
        {"name": "scores", "parameters": {"binary_data": True}},
        {"name": "output"},
    ]
    head = json.dumps(body).encode()
    found = asked(app, "POST", INFER, head + tail, Inference_Header_Content_Length=str(len(head)))
    assert found.status == 400  # header names reach an application in lower case
    found = asked(app, "POST", INFER, head + tail, inference_header_content_length=str(len(head)))
    assert found.status == 200
    length = int(found.headers["inference-header-content-length"])
    outputs, rest = json.loads(found.body[:length])["outputs"], found.body[length:]
    size = outputs[0]["parameters"]["binary_data_size"]
    words, place = [], 0
    while place < size:
        (each,) = struct.unpack_from("<I", rest, place)
        words.append(rest[place + 4 : place + 4 + each].decode())
        place += 4 + each
    assert words == right["label"].tolist()
    np.testing.assert_allclose(np.frombuffer(rest[size:], "<f4").reshape(3, 3), right["scores"], atol=1e-5)
    np.testing.assert_allclose(np.reshape(outputs[2]["data"], (3, 3)), right["output"], atol=1e-5)


ONE = {"numbers": [1, 2, 3, 4], "width": 1}


@pytest.mark.parametrize(
    ("path", "body", "status", "line"),
    [
        (PREDICT, b"{", 400, "the body is not JSON"),
        (PREDICT, [], 400, "the body must be a JSON object"),
        (PREDICT, {}, 400, 'either "instances" (rows) or "inputs" (columns)'),
        (PREDICT, {"instances": []}, 400, "at least one row"),
        (PREDICT, {"instances": [1]}, 400, "an instance must be an object with numbers float32 [4], width int32"),
        (PREDICT, {"instances": [{**ONE, "width": "x"}]}, 400, "'width': expected int32, got 'x'"),
        (PREDICT, {"instances": [{"numbers": [1], "width": 1}]}, 400, "'numbers': a row has shape [4], got [1]"),
        (PREDICT, {"instances": [{**ONE, "more": 1}]}, 400, "row 1 has 'more', which is not an input"),
        (PREDICT, {"instances": [{**ONE, "numbers": [1, 2, 3, None]}]}, 400, "'numbers': expected float32, got null"),
        (PREDICT, {"inputs": {"numbers": [[1, 2, 3, 4]], "width": [None]}}, 400, "'width': expected int32, got null"),
        (PREDICT, {"instances": [{**ONE, "numbers": [1, 2, 3, True]}]}, 400, "'numbers': expected float32, got True"),
        (PREDICT, {"inputs": {"numbers": [[1, 2, 3, 4]], "width": [False]}}, 400, "'width': expected int32, got False"),
        ("/v1/models/pets:classify", {"examples": [{**ONE, "width": True}]}, 400, "'width': expected int32, got True"),
        (PREDICT, {"inputs": ONE}, 400, '"inputs" must hold rows'),
        (PREDICT, {"instances": [ONE], "signature_name": "x"}, 400, 'Serving signature key "x" not found'),
        (PREDICT, {"instances": [ONE] * 51}, 400, "51 rows are too many; the limit is 50"),
        # Refused before a row is looked at.
        (PREDICT, {"instances": [{"numbers": {"b64": "!"}}] * 51}, 400, "51 rows are too many; the limit is 50"),
        (PREDICT, {"inputs": {"numbers": [{"b64": "!"}] * 51}}, 400, "51 rows are too many; the limit is 50"),
        ("/v1/models/pets:classify", {"examples": [{"b64": "!"}] * 51}, 400, "51 rows are too many; the limit is 50"),
        (
            "/v1/models/pets:classify",
            {"examples": [{"width": 1}] * 50, "context": {"numbers": [1] * 400}},
            400,
            "a context of 813 bytes for each of 50 examples takes 40650 bytes; the limit is 20000",
        ),
        (PREDICT, {"instances": [{"numbers": {"b64": "!"}, "width": 1}]}, 400, '"b64" is not valid base64'),
        (PREDICT, b"[" * 100_000, 413, "limit is 20000"),
        (PREDICT, b"[" * 10_000, 400, "the body is not JSON"),
        (PREDICT, b'{"inputs": ' + b"[" * 500 + b"]" * 500 + b"}", 400, "nested more than 32 deep"),
        ("/v1/models/cats:predict", {}, 404, "there is no model 'cats'; the server has 'pets'"),
        ("/v1/models/pets/versions/9:predict", {}, 404, "has no version '9'"),
        ("/v1/models/pets/labels/canary:predict", {}, 404, "no version with the label 'canary'"),
        ("/v1/models/pets:guess", {}, 404, "the verbs are predict, classify and regress"),
        ("/v1/models/pets:regress", {}, 400, "does not return one number per row"),
        ("/v1/models/pets:classify", {"examples": [1]}, 400, '"examples" must be a list of objects'),
        (INFER, {}, 400, '"inputs" must be a list'),
        (INFER, {"inputs": [{"name": "numbers"}]}, 400, "'numbers': \"shape\" must be a list of sizes"),
        (INFER, {"inputs": [{"name": "a", "shape": [1], "datatype": "X"}]}, 400, "'a': \"datatype\" must be one of"),
        (INFER, {"inputs": [{"name": "a", "shape": [2], "datatype": "FP32", "data": [1]}]}, 400, "2 values, got 1"),
        (INFER, {"inputs": [{"name": "a", "shape": [1], "datatype": "FP32", "data": [1]}]}, 400, "no input 'a'"),
        (INFER, {"inputs": [{"name": "a", "shape": [1] * 65, "datatype": "FP32", "data": [1]}]}, 400, "65 dimensions"),
        (INFER, {"inputs": [{"name": "a", "shape": [51, 4], "datatype": "FP32", "data": []}]}, 400, "51 rows are too"),
        (INFER, {"inputs": [{"name": "a", "shape": [1, 2**62], "datatype": "FP32", "data": []}]}, 400, "is 20000"),
        (INFER, {"inputs": [{"name": "a", "shape": [1, -4], "datatype": "FP32", "data": []}]}, 400, "a negative size"),
        (INFER, {"inputs": [{"name": "a", "shape": [2**62, 2**62], "datatype": "FP32", "data": []}]}, 400, "too many"),
        (INFER, {"inputs": [{"name": "a", "shape": [2], "datatype": "BYTES", "data": [{}] * 9}]}, 400, "values, got 9"),
        ("/v2/models/pets/fly", {}, 404, "there is nothing at /v2/models/pets/fly"),
        ("/elsewhere", {}, 404, "there is nothing at /elsewhere"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(app: App, path: str, body: Any, status: int, line: str) -> None:
    length = {"content_length": str(len(body))} if isinstance(body, bytes) else {}
    found = asked(app, "POST", path, body, **length)
    assert found.status == status
    assert line in found.json()["error"]
    assert "\n" not in found.json()["error"]


def test_a_body_of_many_small_values_is_not_parsed(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = application({"pets": bundle}, rows=50)
    parsed: list[int] = []
    monkeypatch.setattr("stoker.serve.http.messages.orjson.loads", lambda body: parsed.append(len(body)))
    for value in (b"{}", b"[]", b"0"):
        body = b'{"instances":[%b]}' % b",".join([value] * 100_000)
        for path in (PREDICT, INFER, "/v1/models/pets:classify"):
            found = asked(app, "POST", path, body)
            assert found.status == 400
            assert " fit into 50 rows" in found.json()["error"]
    assert parsed == []
    app.models.close()


@pytest.mark.parametrize("spaces", [0, 200_000])
def test_as_many_rows_as_may_be_are_taken(bundle: Path, spaces: int) -> None:
    app, _ = application({"pets": bundle}, rows=5000)
    body = json.dumps({"instances": instances(5000)}).encode() + b" " * spaces
    assert len(body) > 200_000
    assert asked(app, "POST", PREDICT, body).status == 200
    app.models.close()


def test_an_output_is_given_once_and_an_input_taken_once(app: App) -> None:
    body, _ = tensors(3, binary=False)
    twice = asked(app, "POST", INFER, {**body, "outputs": [{"name": "label"}] * 2})
    assert (twice.status, twice.json()["error"]) == (400, "the output 'label' is asked for twice")
    twice = asked(app, "POST", INFER, {**body, "inputs": body["inputs"] * 2})
    assert (twice.status, twice.json()["error"]) == (400, "the input 'numbers' is given twice")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["numbers", "width", "b64", "inputs", "name", "shape", "datatype", "data", "parameters"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    value=anything,
    key=st.sampled_from(["instances", "inputs", "examples", "outputs"]),
    raw=st.binary(max_size=40),
)
def test_nothing_a_client_sends_makes_the_server_fail(app: App, value: Any, key: str, raw: bytes) -> None:
    async def all_of_them() -> list[Answer]:
        found = []
        for path in (PREDICT, "/v1/models/pets:classify", INFER):
            found.append(await ask(app, "POST", path, {key: value}))
            found.append(await ask(app, "POST", path, {key: [value], "inputs": value}))
            found.append(
                await ask(app, "POST", path, raw, inference_header_content_length=str(len(raw) // 2))
            )
        return found

    for one in asyncio.run(all_of_them()):
        assert one.status in (200, 400), one.body
        if one.status == 400:
            assert "\n" not in one.json()["error"]


def test_bytes_in_base64_and_long_strings() -> None:
    from stoker.serve.http.tensorflow_rest import decode_base64

    text = base64.b64encode(b"\0\xff").decode()
    assert decode_base64({"a": [{"b64": text}], "c": [1, 2]}) == {"a": [b"\0\xff"], "c": [1, 2]}


def test_requests_that_meet_are_answered_by_one_call(app: App, bundle: Path) -> None:
    right = wanted(bundle, 40)["scores"]
    calls: list[int] = []
    queue = app.models.version("pets").signature().queue
    plain = queue._observe
    queue._observe = lambda rows, seconds: calls.append(rows)

    async def all_at_once() -> list[Answer]:
        return list(
            await asyncio.gather(*(ask(app, "POST", PREDICT, {"instances": [one]}) for one in instances(40)))
        )

    found = [one.json()["predictions"][0]["scores"] for one in asyncio.run(all_at_once())]
    queue._observe = plain
    np.testing.assert_allclose(found, right, atol=1e-5)
    assert sum(calls) == 40
    assert len(calls) < 10


def test_the_queue_is_bounded_and_time_runs_out(bundle: Path) -> None:
    app, _ = application({"pets": bundle}, queue=3, timeout=0.0)
    app.models.version("pets").signature().queue._seconds = 1.0  # a quick model would make room by answering

    async def many() -> list[Answer]:
        return list(
            await asyncio.gather(*(ask(app, "POST", PREDICT, {"instances": [ONE]}) for _ in range(6)))
        )

    found = asyncio.run(many())
    assert sorted(one.status for one in found) == [429] * 3 + [504] * 3
    refused = next(one for one in found if one.status == 429)
    assert refused.headers["retry-after"] == "1"
    assert "Queue full (3 rows)" in refused.json()["error"]
    app.models.close()


def test_a_quick_model_makes_room_by_answering(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.serve.batching._QUICK_S", 1e9)  # quick also on a busy machine
    app, _ = application({"pets": bundle}, queue=3)
    queue = app.models.version("pets").signature().queue
    calls: list[int] = []
    queue._observe = lambda rows, seconds: calls.append(rows)

    async def many() -> list[Answer]:
        return list(
            await asyncio.gather(*(ask(app, "POST", PREDICT, {"instances": [ONE]}) for _ in range(8)))
        )

    assert [one.status for one in asyncio.run(many())] == [200] * 8
    assert max(calls) <= 3
    app.models.close()


def test_token_health_and_request_ids(bundle: Path) -> None:
    app, said = application({"pets": bundle}, token="secret", access_log=True)
    for path in ("/", "/healthz", "/readyz", "/v2/health/live", "/v2/health/ready"):
        assert asked(app, "GET", path).status == 200
    for path in (
        "/v1/models/pets",
        "/v1/models",
        "/v2",
        "/v2/models/pets",
        "/try/pets",
        "/metrics",
        "/ledger",
        "/x",
    ):
        assert asked(app, "GET", path).status == 401
    assert asked(app, "GET", "/v1/models/pets", authorization="Bearer wrong").status == 401
    found = asked(app, "GET", "/v1/models/pets", authorization="Bearer secret", x_request_id="abc")
    assert (found.status, found.headers["x-request-id"]) == (200, "abc")
    assert json.loads(said[-1])["id"] == "abc"
    assert asked(app, "GET", "/v1/models/pets", authorization="bearer secret").status == 200
    paths = ("/readyz", "/v2/health/ready", "/v2/models/pets/ready")
    token = {"authorization": "Bearer secret"}
    assert [asked(app, "GET", path, **token).status for path in paths] == [200] * 3
    app.plane.is_ready = False
    assert [asked(app, "GET", path, **token).status for path in paths] == [503] * 3
    assert asked(app, "GET", "/healthz").status == 200
    app.models.close()


def test_metrics_count(bundle: Path) -> None:
    app, _ = application({"pets": bundle})
    for _ in range(3):
        asked(app, "POST", PREDICT, {"instances": instances(2)})
    asked(app, "POST", PREDICT, {})
    text = asked(app, "GET", "/metrics").body.decode()
    assert 'stoker_requests_total{model="pets",status="200"} 3' in text
    assert 'stoker_requests_total{model="pets",status="400"} 1' in text
    assert 'stoker_rows_total{model="pets"} 6' in text
    assert 'stoker_batch_rows_bucket{model="pets",le="2"} 3' in text
    assert 'stoker_request_seconds_count{model="pets"} 4' in text
    assert 'stoker_request_seconds_bucket{model="pets",le="+Inf"} 4' in text
    # To the last digit: a counter that is rounded stands still.
    app.metrics.count_answer("pets", 200, 0.0, 123_456_786)
    text = app.metrics.text()
    assert 'stoker_rows_total{model="pets"} 123456792' in text
    app.metrics.count_answer("pets", 200, 1e7 + 0.015625, 1)
    assert re.search(r'stoker_request_seconds_sum{model="pets"} 10000000\.0\d{5}', app.metrics.text())
    app.models.close()


def test_the_page_and_what_it_asks(app: App) -> None:
    page = asked(app, "GET", "/", accept="text/html")
    assert b"Try a model" in page.body
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for path in ("/v1/models", "/v2/models"):
        assert asked(app, "GET", path).json() == {"models": ["pets"]}
    model = asked(app, "GET", "/try/pets").json()
    assert model["labels"] == LABELS
    assert asked(app, "POST", PREDICT, {"instances": [model["example"]]}).status == 200


def test_a_slow_model_leaves_the_loop_free_and_a_client_who_leaves_is_forgotten(bundle: Path) -> None:
    app, _ = application({"pets": bundle})
    queue = app.models.version("pets").signature().queue
    entered, go, calls = threading.Event(), threading.Event(), list[int]()
    run = queue._run

    def slowly(arrays: list[Any]) -> list[Any]:
        calls.append(len(arrays[0]))
        entered.set()
        assert go.wait(600)
        return run(arrays)

    queue._run, queue._seconds = slowly, 1.0

    async def meanwhile() -> tuple[int, int, int]:
        first = asyncio.ensure_future(ask(app, "POST", PREDICT, {"instances": [ONE]}))
        while not entered.is_set():
            await asyncio.sleep(0)
        health = await ask(app, "GET", "/healthz")
        gone = asyncio.ensure_future(ask(app, "POST", PREDICT, {"instances": [ONE] * 3}))
        stays = asyncio.ensure_future(ask(app, "POST", PREDICT, {"instances": [ONE] * 2}))
        while queue.rows < 5:
            await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        go.set()
        return health.status, (await first).status, (await stays).status

    assert asyncio.run(meanwhile()) == (200, 200, 200)
    assert calls == [1, 2]
    app.models.close()


def test_a_new_bundle_is_taken_without_a_failed_request(bundle: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(bundle, tmp_path / "pets"))
    app, said = application({"pets": place})
    old = app.models.version("pets").number
    fresh = copied(bundle, tmp_path / "fresh", old + 1)
    statuses: list[int] = []
    done = threading.Event()

    async def load() -> None:
        while not done.is_set():
            statuses.append((await ask(app, "POST", PREDICT, {"instances": [ONE]})).status)
            await asyncio.sleep(0)

    busy = threading.Thread(target=lambda: asyncio.run(load()))
    busy.start()
    wait_until(lambda: len(statuses) > 3)
    place.rename(tmp_path / "old")
    app.models.refresh("pets", ModelSource(place))  # nothing there for a moment
    fresh.rename(place)
    app.models.refresh("pets", ModelSource(place))
    seen = len(statuses)
    wait_until(lambda: len(statuses) > seen + 3)
    done.set()
    busy.join(600)
    assert set(statuses) == {200}
    assert [one.number for one in app.models.versions("pets")] == [old + 1]
    # A damaged one changes nothing, and is said once.
    (place / "examples.npz").write_bytes(b"")
    (place / "bundle.json").write_text((place / "bundle.json").read_text() + " ")
    app.models.refresh("pets", ModelSource(place))
    app.models.refresh("pets", ModelSource(place))
    assert app.models.version("pets").number == old + 1
    assert len([line for line in said if "was rejected" in line]) == 1
    app.models.close()


def copied(bundle: Path, place: Path, number: int) -> Path:
    shutil.copytree(bundle, place)
    return reseal(place, lambda description: description.update(version=number))


def test_numbered_versions(bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle, tmp_path / "pets" / "1")
    shutil.copytree(bundle, tmp_path / "pets" / "12")
    app, _ = application({"pets": tmp_path / "pets"})
    assert [one.number for one in app.models.versions("pets")] == [12, 1]
    assert app.models.version("pets", label="previous").number == 1
    assert asked(app, "POST", "/v1/models/pets/versions/1:predict", {"instances": [ONE]}).status == 200
    shutil.rmtree(tmp_path / "pets" / "1")
    app.models.refresh("pets", ModelSource(tmp_path / "pets"))
    assert [one.number for one in app.models.versions("pets")] == [12]
    app.models.close()


def test_compressed_bodies_are_read_up_to_the_limit(bundle: Path) -> None:
    app, _ = application({"pets": bundle}, body_bytes=10_000)

    def post(body: bytes, way: str) -> Answer:
        return asyncio.run(ask(app, "POST", PREDICT, body, content_encoding=way))

    plain = json.dumps({"instances": [ONE]}).encode()
    right = post(plain, "identity").body
    bare = zlib.compressobj(wbits=-15)
    raw = bare.compress(plain) + bare.flush()
    for body, way in ((gzip.compress(plain), "gzip"), (zlib.compress(plain), "deflate"), (raw, "deflate")):
        assert (post(body, way).status, post(body, way).body) == (200, right)
    refused = post(gzip.compress(b" " * 100_000), "gzip")
    assert (refused.status, refused.json()["error"]) == (
        413,
        "the body has more than 10000 bytes when it is decompressed",
    )
    assert post(gzip.compress(plain)[:-9], "gzip").status == 400
    assert post(b"nonsense", "gzip").status == 400
    assert app.plane.held == 0
