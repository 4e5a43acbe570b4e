"""All rules there are, and what they say of an analysis.

for problem in check(analyse(module, project)): ...
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.facts import Analysis
from stoker.doctor.stall import stalls


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, ordered by code."""
    return tuple(stall for stall in stalls().values() if isinstance(stall, Rule))


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
