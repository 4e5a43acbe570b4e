"""The ledger of requests: its accounts sum to the time, and it says what to change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.serve.plane.ledger import ACCOUNTS, Facts, Spent, advice, lines, to_json

FACTS = Facts(
    requests=100, bytes_each=2048, rows_each_call=3, most_rows=256, workers=1, cores=4, engine="session",
    engine_settled=False,
)  # fmt: skip


def accounts(largest: str) -> dict[str, float]:
    return {name: 0.5 if name == largest else 0.1 for name in ACCOUNTS}


@pytest.mark.parametrize(
    ("largest", "facts", "words"),
    [
        ("parse", FACTS, "parsing takes most of a request (2.0 KiB): send binary tensors"),
        ("encode", FACTS, "ask for fewer outputs"),
        ("queue", FACTS, "requests wait for the engine: --workers 4"),
        ("queue", replace(FACTS, workers=4), "requests wait for the engine: another machine"),
        ("queue", replace(FACTS, rows_each_call=250), "--batch 1024, or --workers 4"),
        ("batch", FACTS, "send several rows in one request"),
        ("loop", FACTS, "each other's parsing and encoding: --workers 4"),
        ("engine", FACTS, "on session: export it with --engine litert or onnx"),
        ("engine", replace(FACTS, engine_settled=True), "a smaller one would help"),
    ],
)
def test_it_says_what_to_change(largest: str, facts: Facts, words: str) -> None:
    assert words in advice(accounts(largest), facts)


def test_the_largest_account_comes_first_and_all_sum_to_the_time() -> None:
    shown = lines("pets", accounts("queue"), FACTS)
    assert shown[0] == "pets: 100 requests, 10,000 us each"
    assert shown[1].split() == ["queue", "5,000", "us", "50.0", "%"]
    assert len(shown) == 2 + len(ACCOUNTS)
    assert sum(to_json(accounts("queue"), FACTS)["seconds"].values()) == pytest.approx(0.01)
    assert lines("pets", {}, replace(FACTS, requests=0)) == ["pets: no requests, so there is no ledger"]


def test_what_is_left_of_a_request_is_the_loops() -> None:
    assert Spent(parse=1, queue=2, batch=3, engine=4, encode=5).loop(17) == 2
    assert Spent(parse=1).loop(0.5) == 0
