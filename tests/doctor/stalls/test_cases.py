"""Every rule's own cases: it reports exactly the marked lines, and its fixes do what the case says."""

from __future__ import annotations

import ast

import pytest

from stoker.config import SEVERITIES
from stoker.doctor.check.registry import all_rules, check
from stoker.doctor.check.rule import Fix, Rule
from stoker.doctor.check.source.analysis import analyse
from stoker.doctor.check.source.module import parse
from stoker.doctor.check.source.project import Project
from stoker.doctor.fix.edits import apply, parses
from stoker.doctor.stall import Case, Stall, stalls

RULES = all_rules()
BAD = [
    pytest.param(rule, case, id=f"{rule.slug}-bad-{number}")
    for rule in RULES
    for number, case in enumerate(rule.bad)
]
GOOD = [
    pytest.param(rule, case, id=f"{rule.slug}-good-{number}")
    for rule in RULES
    for number, case in enumerate(rule.good)
]


def fixes(rule: Rule, code: str) -> list[Fix]:
    problems = check(analyse(parse("case.py", code), Project()))
    return [problem.fix for problem in problems if problem.kind == rule.slug and problem.fix is not None]


def kinds(code: str) -> set[str]:
    return {problem.kind for problem in check(analyse(parse("case.py", code), Project()))}


@pytest.mark.parametrize(("rule", "case"), BAD + GOOD)
def test_reports_exactly_the_marked_lines(rule: Rule, case: Case) -> None:
    problems = check(analyse(parse("case.py", case.code), Project()))
    assert tuple(p.line for p in problems if p.kind == rule.slug) == case.lines


@pytest.mark.parametrize(("rule", "case"), BAD)
def test_fix_gives_the_shown_result_and_is_idempotent(rule: Rule, case: Case) -> None:
    offered = fixes(rule, case.code)
    new, done = apply(case.code, offered, parses)
    assert len(done) == len(offered)
    if case.fixed is not None:
        assert new == case.fixed
    ast.parse(new)
    assert kinds(new) <= kinds(case.code), "a fix brings no finding of another kind"
    if done:
        again, _ = apply(new, fixes(rule, new), parses)
        assert again == new


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slug)
def test_rule_is_complete(rule: Rule) -> None:
    assert rule.severity in SEVERITIES
    assert len(rule.bad) >= 4
    assert len(rule.good) >= 4
    assert all(case.lines for case in rule.bad)
    assert rule.what
    assert rule.why
    offers_one = any(fixes(rule, case.code) for case in rule.bad)
    # The fix flag of the docs derives from the cases: a rule that offers fixes must show one.
    assert rule.fixable == offers_one


def test_every_stall_is_found_by_reading_by_a_run_or_in_a_job() -> None:
    ways = ("find", "find_in_job")
    found = {
        slug
        for slug, stall in stalls().items()
        if isinstance(stall, Rule)
        or any(getattr(type(stall), way) is not getattr(Stall, way) for way in ways)
    }
    assert found == set(stalls())
