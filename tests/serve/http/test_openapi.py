"""`/openapi.json` is true: schemathesis asks a real server for all that it says, and finds no answer that differs."""

from __future__ import annotations

import ast
import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("orjson")
pytest.importorskip("schemathesis")

import jsonschema_rs

import stoker.serve
from stoker.serve.http.app import App
from stoker.serve.plane.errors import MEANINGS
from tests.serve.foreign.models import save
from tests.serve.http.asking import application, ask, variant
from tests.serve.server.test_server import Server
from tests.support import run, wait_until

# Whether so many rows fit together (as many of each input, as many values as a shape says), no schema can express.
_CONFIG = """
[[operations]]
include-path-regex = "(/infer|:predict|:classify|:regress)$"
checks.positive_data_acceptance.enabled = false
"""


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("half") / "half")


@pytest.fixture(scope="module")
def app(pets: tuple[Any, Path], half: Path) -> Iterator[App]:
    made, _ = application({"pets": pets[1], "half": half})
    yield made
    made.models.close()


def document(app: App, **headers: str) -> Any:
    answer = asyncio.run(ask(app, "GET", "/openapi.json", **headers))
    assert answer.status == 200, answer.body
    return answer.json()


@pytest.mark.slow
def test_schemathesis_finds_no_failure(pets: tuple[Any, Path], half: Path, tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(_CONFIG)
    limits = ["--max-rows", "50", "--max-string", "100", "--ledger", "--store", "off"]
    server = Server(f"pets={pets[1]}", f"half={half}", *limits, directory=tmp_path)
    try:
        wait_until(lambda: server.said("ready") == 1 or server.process.poll() is not None)
        outcome = run(
            [
                sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{server.port}/openapi.json",
                "--generation-deterministic", "--max-examples", "5", "--phases", "examples,coverage,fuzzing",
                "--exclude-path-regex", "/labels/", "--continue-on-failure", "--no-color",
            ],
            tmp_path,
        )  # fmt: skip
    finally:
        server.process.kill()
        server.process.wait()
    assert outcome.code == 0, outcome.stdout[-5000:]
    assert "52 selected" in outcome.stdout


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/models/pets:predict", {"instances": [{"numbers": [1, 2, 3, 4], "width": 1}] * 2}),
        (
            "/v1/models/pets/labels/stable:predict",
            {"inputs": {"numbers": [[1, 2, 3, 4.5]], "width": [1]}},
        ),
        ("/v1/models/pets:classify", {"examples": [{"numbers": [1, 2, 3, 4]}], "context": {"width": 1}}),
        ("/v1/models/half:predict", {"instances": [[1.0], [2]]}),
        ("/v1/models/half:predict", {"signature_name": "scalar", "inputs": 2}),
        ("/v1/models/half:predict", {"signature_name": "reverse", "instances": ["a", {"b64": "YWI="}]}),
        ("/v1/models/half/versions/1:regress", {"signature_name": "regress", "examples": [{"x": 2.0}]}),
        (
            "/v2/models/half/infer",
            {
                "id": "7",
                "inputs": [{"name": "x", "shape": [2, 1], "datatype": "FP32", "data": [1, 2]}],
                "outputs": [{"name": "y", "parameters": {"binary_data": False}}],
            },
        ),
    ],
)
def test_what_the_server_answers_the_document_allows(app: App, path: str, body: Any) -> None:
    said = document(app)
    operation = said["paths"][path]["post"]
    answer = asyncio.run(ask(app, "POST", path, body))
    assert answer.status == 200, answer.body
    given, got = operation["requestBody"], operation["responses"]["200"]
    for value, content in ((body, given["content"]), (answer.json(), got["content"])):
        schema = {**content["application/json"]["schema"], "components": said["components"]}
        jsonschema_rs.Draft202012Validator(schema).validate(value)


def test_it_has_what_can_be_asked_and_nothing_else(app: App) -> None:
    paths = document(app)["paths"]
    assert {"/v1/models/pets:classify", "/v1/models/half:regress", "/v1/models/pets/labels/stable"} <= {
        *paths
    }
    # Every signature of `half` says which one it is; the bundle gives no single number; there is one version of each.
    assert not {"/v1/models/pets:regress", "/v1/models/pets/labels/previous", "/ledger"} & {*paths}
    for path, methods in paths.items():
        for method in methods:
            status = asyncio.run(ask(app, method.upper(), path)).status
            assert status == (200 if method == "get" or path == "/v2/repository/index" else 400), path


def test_a_token_and_the_ledger_are_in_the_document(app: App) -> None:
    said = document(variant(app, token="abc", ledger=True), authorization="Bearer abc")
    assert said["paths"]["/ledger"]["get"]["security"] == [{"token": []}]
    assert "401" in said["paths"]["/v1/models/pets:predict"]["post"]["responses"]
    health = said["paths"]["/healthz"]["get"]
    assert "security" not in health
    assert "401" not in health["responses"]


def test_other_methods_and_refusals_have_the_headers_of_http(app: App) -> None:
    wrong = asyncio.run(ask(app, "DELETE", "/v1/models/pets"))
    assert (wrong.status, wrong.headers["allow"]) == (405, "GET, HEAD")
    wrong = asyncio.run(ask(app, "GET", "/v2/models/pets/infer"))
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    assert asyncio.run(ask(app, "HEAD", "/v2/models/pets")).status == 200
    closed = variant(app, token="abc")
    assert asyncio.run(ask(closed, "GET", "/v1/models")).headers["www-authenticate"] == "Bearer"
    coded = asyncio.run(ask(app, "POST", "/v1/models/half:predict", b"x", content_encoding="br"))
    assert (coded.status, coded.headers["accept-encoding"]) == (415, "gzip, deflate")


def test_every_status_of_the_code_is_in_the_table_of_errors() -> None:
    used = set()
    for file in Path(stoker.serve.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "RequestError" and node.args:
                found = node.args[0]
                used |= {one.value for one in ast.walk(found) if isinstance(one, ast.Constant)}
    assert {400, 404, 503} <= used <= {*MEANINGS}
