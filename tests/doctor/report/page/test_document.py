"""The page as a file: what is in it, that nothing of the user's can run, and what becomes of odd records."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from stoker.cli import main
from stoker.doctor.report import headline
from stoker.doctor.report.page import data, document
from stoker.errors import RecordError
from stoker.records import Record, WhatIf
from tests.doctor.report.page.pages import HOSTILE, first_record, full_record, hostile_record, huge_record
from tests.samples import sample_finding, sample_record, sample_simulated_record


def data_of(page: str) -> dict[str, Any]:
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert block
    data: dict[str, Any] = json.loads(block[1])
    return data


class Tags(HTMLParser):
    """All elements of a page, and the content of its scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: dict[str, list[str]] = {"script": [], "style": []}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attrs = self.found[-1] if self.found else ("", {})
        if tag in self.blocks and data.strip() and attrs.get("type") != "application/json":
            self.blocks[tag].append(data)


def sentence(record: Record) -> str:
    return "".join(part.text for part in headline.sentence(record)).replace("\u00a0", " ")


def test_the_sentence_says_how_fast_what_it_could_be_and_what_to_change() -> None:
    assert sentence(sample_simulated_record()) == (
        "24.4 steps a second; it could be 75.6 (3.1x, between 2.6x and 3.5x); first change train.py:42: "
        "a tensor is read back to the host in the loop."
    )


def test_the_sentence_without_a_simulation_speaks_of_the_run() -> None:
    record = sample_record(findings=[sample_finding(what_if=None)])
    assert "done in 7.30 s instead of 12.30 s (1.7x)" in sentence(record)


def test_the_sentence_of_a_run_with_nothing_to_gain() -> None:
    assert "nothing was found" in sentence(sample_record(findings=[]))
    small = sample_finding(lost_s=0.01, what_if=WhatIf(1.001, 1.0, 1.002))
    assert "nothing was found" in sentence(sample_record(findings=[small]))


def test_the_sentence_of_a_program_that_died_at_once() -> None:
    assert (
        sentence(sample_record(accounts={}, findings=[])) == "The program ended before anything was measured."
    )


def test_the_page_carries_every_section() -> None:
    data = data_of(document.page(full_record()))
    for name in (
        "accounts",
        "timeline",
        "steps",
        "findings",
        "excerpts",
        "traces",
        "copies",
        "memory",
        "memory_book",
        "functions",
        "tunings",
    ):
        assert data[name], name
    first = data["findings"][0]
    assert (first["price"], first["range"], first["first"]) == ("3.1x", "2.6x to 3.5x", True)
    assert max(data["excerpts"][0]["heat"]) == 1
    assert data["examples"]["sync-in-loop"]["before"] != data["examples"]["sync-in-loop"]["after"]


def test_the_memory_book_is_stacked_from_what_stays_to_what_goes() -> None:
    (book,) = data_of(document.page(full_record()))["memory_book"]
    assert book["lead"] == "11.2 GiB of 15.0 GiB was in use at the peak of a step, 75%."
    assert [role["name"] for role in book["stack"]] == [
        "weights",
        "optimizer",
        "input",
        "activations",
        "gradients",
        "other",
    ]
    assert [len(role["values"]) for role in book["stack"]] == [len(book["at"])] * 6
    roles = {role["name"]: role for role in book["roles"]}
    assert list(roles) == ["activations", "optimizer", "weights", "other"]
    first = roles["activations"]["owners"][0]
    assert (first["where"], first["layer"], first["size"]) == ("train.py:48", "model/conv_stack", "5.0 GiB")
    assert first["facts"] == "2 pieces · largest float32[256,112,112,64] of model/conv_stack/Conv2D"
    assert sum(owner["share"] for role in book["roles"] for owner in role["owners"]) == pytest.approx(1)


def test_what_the_tuner_did_is_a_section() -> None:
    (card,) = data_of(document.page(full_record()))["tunings"]
    said = "The step takes 820 elements/s, the pipeline gives 310 elements/s and could give 5,900 elements/s (19.0x)."
    assert card["sentence"] == said
    assert card["where"] == "train.py:42"
    assert [tree["title"] for tree in card["trees"]] == ["as it was", "tuned"]
    assert card["trees"][0]["rows"][1] == ["\u00a0\u00a0range()", "", "900,000", "25%", "8 B", ""]
    assert card["changes"] == ["prefetch: batch(32): 310 to 5,900/s, 19.0x"]
    assert card["left"] == ["cache: map(scaled): 1.2 GiB do not fit"]


def test_the_slow_stage_is_marked_in_both_trees() -> None:
    starved = sample_finding(kind="python-input-pipeline", code="STK303")
    data = data_of(document.page(full_record(findings=[starved])))
    written = data["pipelines"]["written"][0]["stages"]
    assert [(s["name"], s["slow"]) for s in written] == [("from_generator", True), ("Batch", False)]
    batch = data["pipelines"]["ran"][0]["children"][0]["children"][0]
    assert (batch["name"], batch["slow"], batch["children"][0]["slow"]) == ("Batch", False, True)


def test_every_kind_a_run_can_find_has_a_before_and_after() -> None:
    from stoker.doctor.report.page.before_after import examples
    from stoker.doctor.stall import stalls

    found = examples(set(stalls()))
    assert set(stalls()) == set(found)
    for example in found.values():
        assert example["why"]
        assert any(differs for _, differs in example["after"])


def test_nothing_of_the_users_is_markup() -> None:
    plain, hostile = Tags(), Tags()
    plain.feed(document.page(full_record()))
    hostile.feed(document.page(hostile_record()))
    assert hostile.found == plain.found
    assert hostile.blocks == plain.blocks
    assert any(
        HOSTILE[0] in finding["file"] for finding in data_of(document.page(hostile_record()))["findings"]
    )


def test_the_policy_allows_exactly_what_is_shipped() -> None:
    tags = Tags()
    tags.feed(document.page(hostile_record()))
    policy = (
        next(a["content"] for _, a in tags.found if a.get("http-equiv") == "Content-Security-Policy") or ""
    )
    digests = set(re.findall(r"sha256-([^']+)", policy))
    blocks = tags.blocks["script"] + tags.blocks["style"]
    made = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in blocks}
    assert digests == made
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert all(name not in attrs for _, attrs in tags.found for name in ("src", "onload", "onerror", "style"))


def test_an_old_record_draws() -> None:
    data = data_of(document.page(Record.from_json(first_record())))
    assert data["timeline"] is None
    assert data["findings"][0]["source"] == "print(loss.numpy())"


def test_a_huge_run_stays_a_small_file() -> None:
    assert len(document.page(huge_record()).encode()) < 5_000_000


def test_numbers_that_json_does_not_know() -> None:
    record = full_record(step_times=[0.1, float("nan"), float("inf")] * 10)
    assert data_of(document.page(record))["steps"]["ms"][1] is None
    assert data.make_portable({"a": [float("-inf"), 1.5]}) == {"a": [None, 1.5]}


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_record_is_drawn_or_one_clear_line(seed: int) -> None:
    """Any value anywhere may be something else: there is a page, or a RecordError, never another exception."""
    chance = random.Random(seed)
    data = json.loads(json.dumps(full_record().to_json()))
    for _ in range(3):
        spot: Any = data
        while True:
            keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
            key = chance.choice(keys)
            below = spot[key]
            if not isinstance(below, (dict, list)) or not below or chance.random() < 0.2:
                spot[key] = chance.choice([None, "x", -1, 1e300, [], {}, [[]], True])
                break
            spot = below
    try:
        record = Record.from_json(data)
    except (KeyError, TypeError, ValueError, AttributeError):
        return
    try:
        said = document.page(record)
    except RecordError as error:
        said = str(error)
        assert "\n" not in said
    assert "<!doctype html>" in said or "damaged" in said


def test_the_command_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_text(json.dumps(first_record()), encoding="utf-8")
    assert main(["report", "run.json", "--html", "out.html"]) == 0
    assert "train.py:42" in Path("out.html").read_text(encoding="utf-8")


def test_the_command_on_damaged_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = json.dumps(first_record())
    bad = {**first_record(), "accounts": {"sync": "much"}}
    for text in (whole[: len(whole) // 2], "[]", '{"schema": 1}', json.dumps(bad)):
        Path("run.json").write_text(text, encoding="utf-8")
        assert main(["report", "run.json", "--html", "out.html"]) == 2
        said = capsys.readouterr().err
        no_record = "stoker: run.json is not a record of Stoker"
        assert said.startswith(no_record if text == "[]" else "stoker: the record")
        assert said.count("\n") == 1
        assert not Path("out.html").exists()


def test_a_page_that_cannot_be_written_is_said_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("raise SystemExit(9)\n", encoding="utf-8")
    assert main(["run", "--html", "no/such/place.html", "train.py"]) == 2
    assert main(["run", "--html", str(tmp_path), "train.py"]) == 2
    said = capsys.readouterr().err
    assert "there is no directory" in said
    assert "is a directory" in said
