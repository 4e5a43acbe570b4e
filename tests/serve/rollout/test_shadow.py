"""A candidate is asked beside the version that answers: clients never notice, and the conclusion is said."""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("uvicorn")
pytest.importorskip("orjson")

from stoker.cli import main
from stoker.serve.http.app import App
from stoker.serve.plane.deployment import begin_run, end_run
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.rollout import shadow
from stoker.serve.rollout.shadow import ShadowCandidate
from stoker.tracking.store.address import parse
from stoker.tracking.store.queries import open_reader
from tests.serve.foreign.models import save
from tests.serve.http.asking import application, ask
from tests.support import HANGS_S, wait_until

PREDICT = "/v1/models/half:predict"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("half")
    save(place / "old")
    save(place / "new", plus=7.0)
    return place


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The candidate may work as long as it wants: tests wait for it."""
    monkeypatch.setattr(shadow, "_UNRESTED_S", float("inf"))


@contextmanager
def shadowed(
    places: Path, candidate: str, **options: Any
) -> Iterator[tuple[App, list[str], ShadowCandidate]]:
    app, said = application({"half": places / "old"}, shadows={"half": str(places / candidate)}, **options)
    found = app.models.shadows.candidate("half")
    assert found is not None
    try:
        yield app, said, found
    finally:
        app.models.close()


def predict(app: App, count: int, *, path: str = PREDICT, body: Any = None) -> list[Any]:
    """The answers to so many requests, a hundred at a time so that the candidate keeps up."""

    async def ask_all(numbers: list[int]) -> list[Any]:
        given = [body or {"instances": [[2.0 * number]]} for number in numbers]
        found = await asyncio.gather(*(ask(app, "POST", path, one) for one in given))
        assert {one.status for one in found} == {200}
        return [one.json() for one in found]

    candidate = app.models.shadows.candidate("half")
    found: list[Any] = []
    for first in range(0, count, 100):
        found += asyncio.run(ask_all(list(range(first, min(count, first + 100)))))
        if candidate is not None:
            wait_until(lambda: candidate._waiting.empty())
    return found


def wanted(count: int) -> list[Any]:
    return [{"predictions": [[number + 2.0]]} for number in range(count)]


def test_a_candidate_that_answers_the_same(places: Path) -> None:
    with shadowed(places, "old") as (app, said, candidate):
        assert predict(app, 700) == wanted(700)
        wait_until(lambda: candidate.test.requests == 700)
        found = asyncio.run(ask(app, "GET", "/shadow")).json()["half"]
        assert (found["conclusion"], found["changed"], found["failed"], found["skipped"]) == ("same", 0, 0, 0)
        metrics = asyncio.run(ask(app, "GET", "/metrics")).body.decode()
        assert 'stoker_shadow_requests{model="half",worker="0"} 700\n' in metrics
        assert 'stoker_shadow_conclusion{model="half",worker="0"} -1\n' in metrics
        # It is asked past the metrics of the model.
        assert 'stoker_rows_total{model="half"} 700\n' in metrics
        assert "/shadow" in asyncio.run(ask(app, "GET", "/openapi.json")).json()["paths"]
    (line,) = [one for one in said[:-1] if "shadow: same" in one]
    assert line.startswith("half shadow: same: fewer than 1 % of rows change (0 % of rows changed in ")


def test_a_candidate_that_answers_otherwise_is_never_answered_from(
    places: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = f"sqlite:///{tmp_path}/stoker.db"
    run = begin_run(ServerSettings({"half": str(places / "old")}), parse(store))
    with shadowed(places, "new", run=run.id, store=store) as (app, said, candidate):
        assert predict(app, 20) == wanted(20)
        wait_until(lambda: candidate.test.requests == 20)
        assert sum("half shadow: different: more than 1 % of rows change" in one for one in said) == 1
        # Another signature of both, whose answer is a single value.
        scalar = {"signature_name": "scalar", "inputs": 2.0}
        assert predict(app, 1, body=scalar) == [{"outputs": 3.0}]
        wait_until(lambda: candidate.test.requests == 21)
        assert candidate.failed == 0
        # What the served version refuses, the candidate is not asked.
        assert asyncio.run(ask(app, "POST", PREDICT, {"instances": [["a"]]})).status == 400
        assert candidate.test.requests == 21
    end_run(run)
    with open_reader(parse(store)) as reader:
        (found,) = [json.loads(row.details) for row in reader.audit() if row.event == "compared"]
    assert (found["model"], found["conclusion"], found["changed"]) == ("half", "different", 1.0)
    assert found["path"] == str(places / "new")
    assert main(["runs", "show", run.id, "--store", store]) == 0
    shown = capsys.readouterr().out
    assert "candidate of half" in shown
    assert "different (100 % of rows changed in " in " ".join(shown.split())


def test_no_answer_waits_for_a_candidate(places: Path) -> None:
    running, go_on = threading.Event(), threading.Event()

    def hang(arrays: list[Any]) -> list[Any]:
        running.set()
        go_on.wait(HANGS_S)
        return arrays

    with shadowed(places, "new") as (app, _, candidate):
        candidate.version.signature().queue._run = hang
        count = 300

        async def ask_all() -> list[Any]:
            assert (await ask(app, "POST", PREDICT, {"instances": [[0.0]]})).status == 200
            running.wait(HANGS_S)
            given = [{"instances": [[2.0 * number]]} for number in range(count)]
            return [(await ask(app, "POST", PREDICT, one)).json() for one in given]

        try:
            assert asyncio.run(ask_all()) == wanted(count)
            assert candidate.test.requests == 0
            assert candidate.skipped == count - 256
        finally:
            go_on.set()


def test_a_candidate_rests_far_longer_than_it_works(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resting, go_on = threading.Event(), threading.Event()
    rests: list[float] = []

    def rest(seconds: float) -> None:
        rests.append(seconds)
        resting.set()
        go_on.wait(HANGS_S)

    monkeypatch.setattr(shadow, "_UNRESTED_S", 0.0)
    with shadowed(places, "old") as (app, _, candidate):
        monkeypatch.setattr(candidate._ended, "wait", rest)

        async def ask_all() -> set[int]:
            first = await ask(app, "POST", PREDICT, {"instances": [[0.0]]})
            resting.wait(HANGS_S)
            rest = [await ask(app, "POST", PREDICT, {"instances": [[2.0]]}) for _ in range(300)]
            return {one.status for one in (first, *rest)}

        try:
            assert asyncio.run(ask_all()) == {200}
            assert candidate.test.requests == 1
            assert candidate.skipped == 300 - 256
            assert len(rests) == 1
            assert 0 < rests[0] <= shadow._LONGEST_REST_S
        finally:
            go_on.set()
        wait_until(lambda: candidate.test.requests == 1 + 256)


def test_requests_that_wait_are_asked_together_and_counted_each(places: Path) -> None:
    running, go_on = threading.Event(), threading.Event()
    calls: list[int] = []
    # By request: its rows, of which those of a four change.
    given = [[0.0], [4.0], [1.0, 4.0], [2.0, 3.0, 5.0], [4.0, 4.0, 1.0, 0.0], [6.0]]
    shares = [0, 1, 0.5, 0, 0.5, 0]

    with shadowed(places, "old", batch=8) as (app, _, candidate):
        queue = candidate.version.signature().queue
        model = queue.run

        def change(arrays: list[Any]) -> list[Any]:
            calls.append(len(arrays[0]))
            running.set()
            go_on.wait(HANGS_S)
            return [model(arrays)[0] + (arrays[0] == 4)]

        queue._run = change

        async def ask_all() -> None:
            for numbers in given:
                body = {"instances": [[number] for number in numbers]}
                assert (await ask(app, "POST", PREDICT, body)).status == 200
                running.wait(HANGS_S)

        asyncio.run(ask_all())
        go_on.set()
        wait_until(lambda: candidate.test.requests == len(given))
        assert candidate.test.changed == pytest.approx(sum(shares) / len(given))
        # The first one alone; then as many as a call may have; then the rest.
        assert calls == [1, 6, 5]


def test_a_canary_answers_its_share_and_loses_no_request(places: Path) -> None:
    with shadowed(places, "old", canary=0.5) as (app, _, candidate):
        model, queue = candidate.version.signature().queue.run, candidate.version.signature().queue
        calls: list[int] = []

        def mark(arrays: list[Any]) -> list[Any]:
            calls.append(len(arrays[0]))
            if threading.current_thread().name == "stoker-shadow":
                return model(arrays)
            if 14.0 in arrays[0]:
                raise ZeroDivisionError("no such luck")
            return [model(arrays)[0] + 0.25]

        queue._run = mark
        found = predict(app, 200)
        answered = [one["predictions"][0][0] - number - 2 for number, one in enumerate(found)]
        assert {*answered} == {0.0, 0.25}
        assert answered.count(0.25) == candidate.answered - candidate.refused
        assert answered[7] == 0.0  # whoever was asked, the model answered
        assert 40 < candidate.answered < 160
        # Whoever names a version gets it; the candidate's own answers are no evidence.
        assert predict(app, 50, path="/v1/models/half/versions/1:predict") == wanted(50)
        wait_until(lambda: candidate.test.requests == 250 - candidate.answered + candidate.refused)
        assert candidate.test.changed == 0
        # Refused by both: one answer, and the candidate is not to blame alone.
        assert asyncio.run(ask(app, "POST", PREDICT, {"instances": [["a"]]})).status == 400


def test_what_a_canary_refuses_over_grpc_the_model_answers(places: Path) -> None:
    grpc = pytest.importorskip("grpc")
    from stoker.serve.grpc.messages import INFERENCE, SERVING, message_class
    from tests.serve.grpc.channels import serve_grpc

    infer = message_class(f"{INFERENCE}.ModelInferRequest")(model_name="half")
    infer.inputs.add(name="x", datatype="FP32", shape=[1, 1]).contents.fp32_contents.append(2.0)
    predict_one = message_class(f"{SERVING}.PredictRequest")()
    predict_one.model_spec.name = "half"
    predict_one.inputs["x"].MergeFromString(tf.make_tensor_proto([[2.0]]).SerializeToString())
    tensor = type(tf.make_tensor_proto(0))
    calls = {
        f"/{INFERENCE}.GRPCInferenceService/ModelInfer": (infer, f"{INFERENCE}.ModelInferResponse"),
        f"/{SERVING}.PredictionService/Predict": (predict_one, f"{SERVING}.PredictResponse"),
    }
    # It gets every request, for no evidence is enough to end this canary.
    with shadowed(places, "old", canary=1.0, shadow_allowed=0.99) as (app, _, candidate):

        def lose_rows(arrays: list[Any]) -> list[Any]:
            return [np.array([["no number"]], object)]  # fails when it is encoded

        candidate.version.signature().queue._run = lose_rows
        with serve_grpc(app) as address, grpc.insecure_channel(address) as channel:
            for path, (request, name) in calls.items():
                call = channel.unary_unary(
                    path, type(request).SerializeToString, message_class(name).FromString
                )
                found = [call(request, timeout=HANGS_S).outputs for _ in range(12)]
                if "infer" in path.lower():
                    assert [[list(y.contents.fp32_contents) for y in one] for one in found] == [[[3.0]]] * 12
                else:
                    assert [
                        tf.make_ndarray(tensor.FromString(one["y"].SerializeToString())).tolist()
                        for one in found
                    ] == [[[3.0]]] * 12
        assert candidate.refused == candidate.answered == 12 * len(calls)


def test_a_canary_that_proves_different_answers_no_more(places: Path) -> None:
    with shadowed(places, "new", canary=0.3) as (app, said, candidate):
        # The first request goes to the candidate, though a few others are evidence enough to end the canary.
        random.seed(1)
        assert random.random() < 0.3
        random.seed(1)
        predict(app, 100)
        wait_until(lambda: any("half shadow: different" in one for one in said))
        before = candidate.answered
        assert before > 0
        assert predict(app, 100) == wanted(100)
        assert candidate.answered == before


def test_a_candidate_that_fails_is_different(places: Path) -> None:
    def fail(arrays: list[Any]) -> list[Any]:
        raise ZeroDivisionError("no such luck")

    with shadowed(places, "old") as (app, said, candidate):
        candidate.version.signature().queue._run = fail
        assert predict(app, 5) == wanted(5)
        wait_until(lambda: candidate.test.requests == 5)
        assert candidate.failed == 5
        assert said.count("half shadow: it does not answer: ZeroDivisionError: no such luck") == 1
        assert any("half shadow: different" in one for one in said)


def test_another_served_version_begins_anew(places: Path, tmp_path: Path) -> None:
    place = tmp_path / "versions"
    place.mkdir()
    os.symlink(places / "old", place / "1")
    app, said = application({"half": place}, shadows={"half": str(places / "new")})
    try:
        candidate = app.models.shadows.candidate("half")
        assert candidate is not None
        predict(app, 3)
        os.symlink(places / "new", place / "2")  # promoted
        app.models.refresh("half", app.models._sources["half"])
        predict(app, 2, path="/v1/models/half/versions/1:predict")  # the older one: nothing to compare with
        predict(app, 3)
        wait_until(lambda: candidate.test.requests == 3)
        assert candidate.test.changed == 0
        assert "half shadow: version 2 answers now: starting over" in said
    finally:
        app.models.close()


def test_bad_options_are_one_line(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = str(places / "old"), str(places / "new")
    for words, line in (
        ([f"a={old}", f"b={old}", "--shadow", new], "give NAME=PATH, where NAME is one of a, b"),
        ([old, "--shadow", f"other={new}"], "where NAME is one of model"),
        ([old, "--shadow", new, "--shadow", new], "model already has a candidate"),
        ([old, "--shadow", str(places / "none")], "there is no directory"),
        ([old, "--canary", "5%"], "--canary needs the new version"),
        ([old, "--shadow", new, "--canary", "60%"], "--canary 60%: at most 50%"),
        ([old, "--shadow", new, "--shadow-allow", "100%"], "--shadow-allow 100%: give a percentage"),
    ):
        assert main(["serve", *words]) == 2
        assert line in capsys.readouterr().err
