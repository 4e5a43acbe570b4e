"""The data plane answers a question of any protocol, and explains why not in one line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("orjson")

from stoker.serve.plane.answering import DataPlane, Inquiry, Parsed, Question
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.served import Answers
from stoker.serve.rows import as_rows
from tests.serve.bundles import LABELS, rows
from tests.serve.http.asking import application


@pytest.fixture
def made(pets: tuple[Any, Path]) -> Iterator[tuple[DataPlane, list[str]]]:
    app, said = application({"pets": pets[1]}, queue=4, rows=3, held_bytes=100)
    yield app.plane, said
    app.models.close()


def labels_of(answers: Answers) -> list[str]:
    return [str(one) for one in answers["label"]]


def question(plane: DataPlane, count: int, encode: Any = labels_of) -> Question[list[str]]:
    version = plane.models.version("pets")
    return Question(
        "pets",
        version,
        0,
        lambda asked: Parsed(asked.signature(), as_rows(asked.inputs, rows(count)), encode),
    )


async def outcome(plane: DataPlane, asked: Question[list[str]]) -> list[str] | tuple[int, str]:
    try:
        return await plane.ask(Inquiry("/somewhere", "7", "pets"), asked)
    except RequestError as error:
        return error.status, error.line


def test_a_question_is_answered_in_the_form_its_protocol_wants(made: tuple[DataPlane, list[str]]) -> None:
    plane, said = made
    inquiry = Inquiry("/somewhere", model="pets")
    found = asyncio.run(plane.ask(inquiry, question(plane, 2)))
    assert len(found) == 2
    assert set(found) <= set(LABELS)
    assert inquiry.rows == 2
    plane.count(inquiry, 200, 0)
    assert plane.metrics.total("stoker_rows_total", "pets") == 2
    assert "error" not in "".join(said)


def test_what_goes_wrong_is_a_status_and_one_line(made: tuple[DataPlane, list[str]]) -> None:
    plane, said = made

    def fail(answers: Answers) -> list[str]:
        raise KeyError("scores\nand more")

    async def all_at_once() -> list[Any]:
        asked = [question(plane, 2), question(plane, 1, fail), question(plane, 4), question(plane, 2)]
        return list(await asyncio.gather(*(outcome(plane, one) for one in asked)))

    plane.models.version(
        "pets"
    ).signature().queue._seconds = 10.0  # a quick model would make room by answering
    right, failed, many, crowded = asyncio.run(all_at_once())
    assert len(right) == 2, "the failure of another question of the same batch is not its own"
    assert failed[0] == 500
    assert failed[1].startswith("the model failed: KeyError")
    assert json.loads(said[-1])["id"] == "7"
    assert many == (400, "4 rows are too many; the limit is 3 per request")
    assert crowded == (429, "Queue full (4 rows). Retry later, or raise --queue.")


def test_a_question_nobody_waits_for_is_not_answered(made: tuple[DataPlane, list[str]]) -> None:
    plane, _ = made
    inquiry, found = Inquiry("/somewhere", model="pets"), list[Any]()

    async def leave() -> None:
        plane.submit(inquiry, question(plane, 1), found.append)
        inquiry.has_left = True
        while not found:
            await asyncio.sleep(0)

    asyncio.run(leave())
    assert found[0].status == 499
    assert plane.metrics.calls("pets") == (0, 0)


def test_bodies_are_held_up_to_the_limit(made: tuple[DataPlane, list[str]]) -> None:
    plane, _ = made
    small, large = Inquiry("/a"), Inquiry("/b")
    plane.hold(small, 60)
    with pytest.raises(RequestError, match="already hold 100 bytes"):
        plane.hold(large, 60)
    plane.release(large)
    plane.release(small)
    assert plane.held == 0
