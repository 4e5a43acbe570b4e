"""The JSON contract other programs rely on."""

from __future__ import annotations

import dataclasses
import json

import pytest

from stoker.records import ACCOUNTS, Record, Repairs, speedup_without
from tests.samples import sample_record, sample_simulated_record

# The names of the contract. Fields may be added; none of these may go or change its name.
RECORD_NAMES = {
    *("schema", "id", "program", "argv", "exit_code", "versions", "device", "wall_s", "steps", "steps_per_s"),
    *("examples_per_s", "accounts", "findings"),
}
FINDING_NAMES = {
    *(
        "kind",
        "code",
        "file",
        "line",
        "column",
        "function",
        "source",
        "evidence",
        "count",
        "seconds",
        "wait_s",
    ),
    *("copy_s", "bytes", "what_if", "title", "remedy", "detail"),
}


def test_the_contracts_names_are_there() -> None:
    data = json.loads(json.dumps(sample_record().to_json()))
    assert data.keys() >= RECORD_NAMES
    assert data["findings"][0].keys() >= FINDING_NAMES
    assert data["device"].keys() >= {"name", "kind", "count", "busy"}
    assert data["findings"][0]["what_if"].keys() >= {"speedup", "low", "high"}
    assert data["schema"] == 1


def test_the_accounts_are_the_contracts() -> None:
    assert set(ACCOUNTS) == {
        *(
            "startup",
            "trace",
            "input",
            "transfer",
            "sync",
            "compute",
            "dispatch",
            "communication",
            "checkpoint",
            "teardown",
            "python",
        )
    }


def test_a_record_reads_back_equal() -> None:
    record = sample_simulated_record()
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_one_answer_to_what_a_finding_costs() -> None:
    priced = sample_record()
    assert speedup_without(priced.findings[0], priced) == 3.1
    unpriced = dataclasses.replace(priced.findings[0], what_if=None)
    assert speedup_without(unpriced, priced) == pytest.approx(12.3 / 7.3)
    simulated = dataclasses.replace(priced, what_if=Repairs())
    assert speedup_without(unpriced, simulated) is None
