"""`stoker explain`, and that the pages under docs/rules are the ones the rules make."""

from __future__ import annotations

import pytest

from stoker.cli import main
from stoker.doctor.check.registry import all_rules
from stoker.doctor.report import rule_page
from tests.support import ROOT

DOCS = ROOT / "docs" / "rules"


@pytest.mark.parametrize("name", ["STK101", "stk101", "sync-in-loop"])
def test_prints_the_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name]) == 0
    out = capsys.readouterr().out
    for part in (
        "What it does",
        "Why is this bad?",
        "Example",
        "Use instead",
        "Fix safety",
        "Known problems",
    ):
        assert f"## {part}" in out


def test_a_kind_that_only_a_run_finds_has_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "input-starved"]) == 0
    assert "stoker run" in capsys.readouterr().out


def test_unknown_kind_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "STK999"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.slug)
def test_docs_are_up_to_date(rule: object) -> None:
    from stoker.doctor.check.rule import Rule

    assert isinstance(rule, Rule)
    written = (DOCS / f"{rule.slug}.md").read_text(encoding="utf-8")
    assert written == rule_page.page(rule), "run `stoker explain --write docs/rules`"


def test_index_is_up_to_date() -> None:
    assert (DOCS / "README.md").read_text(encoding="utf-8") == rule_page.index(all_rules())
