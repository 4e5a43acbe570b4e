"""The Grafana dashboard asks for what a server prints, all of it and nothing else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

pytest.importorskip("orjson")
pytest.importorskip("uvicorn")

import keras
import numpy as np

import stoker
from tests.serve.server.test_server import Server
from tests.support import ROOT, wait_until

DASHBOARD = ROOT / "docs" / "grafana" / "stoker-serve.json"
_SAMPLE = re.compile(r"(\w+)\{(.*)\} \S+")


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def expressions() -> list[str]:
    return [target["expr"] for one in panels() for target in one.get("targets", ())]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The names that a server prints when everything is on, each with its labels."""
    place = tmp_path_factory.mktemp("dashboard")
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((2,), name="x"), keras.layers.Dense(1)])
    rows: Any = np.random.default_rng(0).random((128, 2), "float32")
    stoker.export(model, place / "bundle", examples=rows)
    words = ["--ledger", "--record", "1", "--canary", "10%", "--store", f"sqlite:///{place}/stoker.db"]
    server = Server(str(place / "bundle"), "--shadow", str(place / "bundle"), *words, directory=place)
    wait_until(lambda: server.said("ready") == 1)
    try:
        asked = {"instances": [{"x": row} for row in rows.tolist()]}
        for _ in range(3):
            assert server.ask("/v1/models/model:predict", asked)[0] == 200
        text = server.ask("/metrics")[1].decode()
    finally:
        server.process.kill()
        server.process.wait()
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            sample = _SAMPLE.fullmatch(line)
            assert sample, line
            found.setdefault(sample[1], set()).update(re.findall(r'(\w+)="', sample[2]))
    return found


@pytest.mark.slow
def test_every_query_is_of_what_the_server_prints(printed: dict[str, set[str]]) -> None:
    for expression in expressions():
        names = set(re.findall(r"stoker_\w+", expression))
        assert names
        assert names <= set(printed), expression
        labels = {
            one.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for one in group.split(",")
        }
        labels |= set(re.findall(r"(\w+)=~?\"", expression))
        known = set.intersection(*(printed[name] for name in names))
        # The account is a label of one side of a division only, which says so.
        assert labels - {"account"} <= known, expression
    assert "account" in printed["stoker_account_seconds_total"]


def test_it_leaves_out_nothing_that_the_server_prints(printed: dict[str, set[str]]) -> None:
    asked = {
        re.sub(r"_(bucket|sum|count)$", "", name)
        for one in expressions()
        for name in re.findall(r"stoker_\w+", one)
    }
    shown = {re.sub(r"_(bucket|sum|count)$", "", name) for name in printed}
    assert asked == shown


def test_panels_have_an_id_each_and_do_not_overlap() -> None:
    assert len({one["id"] for one in panels()}) == len(panels())
    taken: set[tuple[int, int]] = set()
    for one in panels():
        at = one["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, one["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
