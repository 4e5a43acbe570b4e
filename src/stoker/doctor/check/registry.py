"""All rules there are, and what they say of an analysis.

    for problem in check(analyse(module, project)): ...

Rules are found by looking into their package: a file there that defines `RULE` is one.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator

from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.analysis import Analysis

_RULES = "stoker.doctor.stalls"


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by code."""
    package = importlib.import_module(_RULES)
    found = []
    for module in pkgutil.iter_modules(package.__path__):
        rule = getattr(importlib.import_module(f"{_RULES}.{module.name}"), "RULE", None)
        if isinstance(rule, Rule):
            found.append(rule)
    return tuple(sorted(found, key=lambda rule: rule.info.code))


def check(analysis: Analysis) -> list[Problem]:
    """All problems of an analysis, one per kind and line, in the order of the files."""
    best: dict[tuple[str, int, str], Problem] = {}
    for problem in _problems(analysis):
        key = (problem.file, problem.line, problem.kind)
        known = best.get(key)
        # The leftmost one on the line speaks for it; a certain one before a presumed one.
        if known is None or _rank(problem) < _rank(known):
            best[key] = problem
    return sorted(best.values(), key=lambda p: (p.file, p.line, p.column, p.code))


def _problems(analysis: Analysis) -> Iterator[Problem]:
    if analysis.facts:
        for rule in all_rules():
            yield from rule.check(analysis)


def _rank(problem: Problem) -> tuple[bool, int]:
    return problem.presumed is not None, problem.column
