"""The figures in docs/accuracy.md are the ones measured, and they are good enough."""

from __future__ import annotations

import pytest

from stoker.doctor.check.registry import all_rules
from tests.doctor.accuracy.measure import PROGRAMS, Scores, labelled, measure, split
from tests.support import ROOT

PAGE = ROOT / "docs" / "accuracy.md"


@pytest.fixture(scope="module")
def scores() -> Scores:
    return measure()


def test_targets_are_met(scores: Scores) -> None:
    assert scores.programs >= 60
    assert scores.precision >= 0.9, sorted(scores.wrong)
    assert scores.recall >= 0.8, sorted(scores.missed)


def test_the_page_tells_what_is_measured(scores: Scores) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert scores.summary() in page
    assert scores.table() in page


def test_labels_are_kinds() -> None:
    known = {rule.slug for rule in all_rules()}
    for program in PROGRAMS.glob("*.txt"):
        for text in split(program.read_text(encoding="utf-8")).values():
            assert {kind for _, kind in labelled(text)[1]} <= known, program


def test_labels_and_files_are_read() -> None:
    files = split("### file: a.py\nx = 1  #! sync-in-loop, missing-prefetch\n### file: b.py\ny = 2\n")
    assert list(files) == ["a.py", "b.py"]
    assert labelled(files["a.py"]) == ("x = 1\n", [(1, "sync-in-loop"), (1, "missing-prefetch")])
