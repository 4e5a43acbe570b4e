"""What a server records can be asked again, and what changed is found on its rows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("orjson")

from stoker.cli import main
from stoker.serve.rollout.recordings import plain_values, read_recordings_at
from tests.serve.bundles import rows
from tests.serve.http.asking import application, ask

COUNT = 700


@pytest.fixture(scope="module")
def recorded(pets: tuple[Any, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The answers of a server that records everything."""
    place = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        app, _ = application({"pets": pets[1]}, record=1.0, run="served", record_values=20)
        given = rows(2 * COUNT)

        async def ask_all() -> None:
            for first in range(0, 2 * COUNT, 2):
                body = {"inputs": {name: one[first : first + 2].tolist() for name, one in given.items()}}
                assert (await ask(app, "POST", "/v1/models/pets:predict", body)).status == 200
            much = {"inputs": {name: one[:9].tolist() for name, one in given.items()}}
            assert (await ask(app, "POST", "/v1/models/pets:predict", much)).status == 200

        asyncio.run(ask_all())
        app.models.close()
    return place / ".stoker" / "answers"


def rewrite(recorded: Path, place: Path, change: Callable[[int, Any], None]) -> Path:
    """The recordings as if another model had answered."""
    (file,) = recorded.glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for number, one in enumerate(lines):
        change(number, one)
    place.mkdir()
    (place / file.name).write_text("".join(json.dumps(one) + "\n" for one in lines))
    return place


def replay(*words: str | Path) -> int:
    return main(["replay", *map(str, words)])


def test_the_same_bundle_answers_the_same(
    recorded: Path, pets: tuple[Any, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(recorded, pets[1]) == 0
    said = capsys.readouterr().out
    assert f"{COUNT} requests with {2 * COUNT:,} rows sent again, first answered by version" in said
    assert "1 request left out: too many values to be recorded" in said
    assert "\nsame: fewer than 1 % of rows change (0 % of rows changed in 700 requests;" in said
    assert "changed most" not in said


def test_changed_rows_are_found_and_counted(
    recorded: Path, pets: tuple[Any, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(number: int, one: Any) -> None:
        if number % 10 == 3 and isinstance(one["answers"]["label"], list):
            one["answers"]["label"][1] = "cow"
            one["answers"]["scores"][1][0] += 0.5 + number / 10_000

    place = rewrite(recorded, tmp_path / "changed", change)
    assert replay(place, pets[1], "--json", "--rows", "2") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["conclusion"], found["rows"], found["changed"]) == ("different", 1400, 70)
    assert found["outputs"]["label"] == {
        "rows": 1400, "changed": 70, "off_mean": None, "off_p99": None, "off_largest": None
    }  # fmt: skip
    assert found["outputs"]["scores"]["changed"] == 70
    assert found["outputs"]["scores"]["off_largest"] == pytest.approx(0.5693, abs=1e-4)
    # Those that changed most: the last ones, in their second row.
    assert [(one["line"], one["row"]) for one in found["changed_rows"]] == [(694, 2), (684, 2)]
    first = found["changed_rows"][0]
    given = rows(2 * COUNT)
    assert first["inputs"]["width"] == given["width"][2 * 693 + 1]
    assert first["before"]["label"] == "cow" != first["after"]["label"]
    assert replay(place, pets[1], "--allow", "20%", "--rows", "1") == 0
    said = capsys.readouterr().out
    assert ':694 row 2: label "cow" -> ' in said
    assert "same: fewer than 20 % of rows change" in said


def test_requests_that_do_not_fit_any_more_are_counted_by_reason(
    recorded: Path, pets: tuple[Any, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(number: int, one: Any) -> None:
        if number < 3:
            one["inputs"]["height"] = one["inputs"].pop("width")
        elif number < 5:
            one["answers"]["price"] = [1.0, 2.0]

    assert replay(rewrite(recorded, tmp_path / "odd", change), pets[1]) == 1
    said = capsys.readouterr().out
    assert "3 requests cannot be compared: there is no input 'height'" in said
    assert "2 requests cannot be compared: there is no output 'price' any more" in said


def test_bad_recordings_are_one_line(
    recorded: Path, pets: tuple[Any, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rename(number: int, one: Any) -> None:
        one["model"] = "cats" if number else "pets"

    two = rewrite(recorded, tmp_path / "two", rename)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.jsonl").write_text('{"time": 1}\n')
    for words, line in (
        ([tmp_path / "none", pets[1]], "there is no file or folder"),
        ([tmp_path / "empty", pets[1]], "has no recorded answers (*.jsonl): record some with stoker serve"),
        ([tmp_path / "bad.jsonl", pets[1]], "bad.jsonl:1 is not a recorded answer"),
        ([two, pets[1]], "has answers of 'pets' and 'cats': choose one with --model"),
        ([two, pets[1], "--model", "dogs"], "has no recorded answers of 'dogs'"),
        ([recorded, tmp_path], "is not a bundle"),
        ([recorded, pets[1], "--allow", "0"], "--allow 0: give a percentage between 0 and 100"),
        ([recorded, pets[1], "--rows", "-1"], "--rows -1 must be at least 0"),
    ):
        assert replay(*words) == 2
        assert line in capsys.readouterr().err
    assert replay(two, pets[1], "--model", "pets") == 0
    assert "1 request with 2 rows sent again" in capsys.readouterr().out


def test_values_come_back_as_they_were(tmp_path: Path) -> None:
    values = {
        "texts": np.array([[b"a", b"\xff"], ["b", "c"]], object),
        "numbers": np.array([[1.5, np.nan]], "float32"),
        "many": np.zeros(9),
    }
    entry = {
        "time": 1, "request": "r", "model": "m", "version": 1,
        "inputs": {name: plain_values(one, 8) for name, one in values.items()}, "answers": {},
    }  # fmt: skip
    text = json.dumps(entry).replace("NaN", "null")  # as the server writes it
    (tmp_path / "a.jsonl").write_text(text + "\n" + text[:20])  # the server was killed within a line
    (found,) = read_recordings_at(tmp_path)
    assert not found.is_whole
    assert found.inputs == {"texts": [["a", b"\xff"], ["b", "c"]], "numbers": [[1.5, None]], "many": None}
