"""The ledger in Prometheus' text format."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from stoker.goodput.accounts import ACCOUNTS
from stoker.goodput.fold import fold
from stoker.goodput.history import read_history
from stoker.goodput.ledger import BadputCause, JobLedger, Price
from stoker.goodput.prometheus import format_metrics
from tests.goodput.samples import KILLED, write_job

_SAMPLE = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\S+)')


@pytest.fixture
def ledger(tmp_path: Path) -> JobLedger:
    """Of the job in `samples`."""
    directory = write_job(tmp_path)
    return fold(directory.name, read_history(directory))


def _read(text: str) -> dict[tuple[str, str], float]:
    """The samples of the text, by name and labels; each name is declared once, before its samples."""
    found, declared = {}, []
    for line in text.splitlines():
        if line.startswith("#"):
            _, word, name, _ = line.split(" ", 3)
            declared += [name] if word == "TYPE" else []
            continue
        match = _SAMPLE.fullmatch(line)
        assert match is not None, line
        assert declared[-1] == match[1]
        found[match[1], match[2]] = float(match[3])
    assert len(declared) == len(set(declared))
    return found


def test_the_figures_of_a_job(ledger: JobLedger) -> None:
    found = _read(format_metrics(ledger, Price.parse("3.60/h")))
    job = f'job="{ledger.job}"'
    assert found["stoker_job_goodput_ratio", job] == 0.6
    assert found["stoker_job_lost_steps", job] == 19
    assert found["stoker_job_running", job] == 0
    assert found["stoker_job_lost_seconds", f'{job},cause="{KILLED}"'] == 30.0
    assert found["stoker_job_cost", f'{job},account="productive"'] == pytest.approx(0.12)
    spent = [found["stoker_job_account_seconds", f'{job},account="{name}"'] for name in ACCOUNTS]
    assert sum(spent) == pytest.approx(found["stoker_job_wall_seconds", job], rel=1e-9)


def test_texts_are_escaped_and_unknown_figures_left_out(ledger: JobLedger) -> None:
    odd = replace(ledger, steps=0, lost_steps=0, causes=[BadputCause('a "b"\\c\nd', 1.0)])
    found = _read(format_metrics(odd))
    assert ("stoker_job_lost_seconds", f'job="{odd.job}",cause="a \\"b\\"\\\\c\\nd"') in found
    assert not {"stoker_job_goodput_ratio", "stoker_job_cost"} & {name for name, _ in found}
