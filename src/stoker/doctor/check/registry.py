"""All rules, and the problems that they find in an analysis.

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
    """Return every rule, ordered by code."""
    return tuple(stall for stall in stalls().values() if isinstance(stall, Rule))


def check(analysis: Analysis) -> list[Problem]:
    """Return all problems of an analysis, one for each kind and line, ordered by file and line."""
    best: dict[tuple[str, int, str], Problem] = {}
    for problem in _problems(analysis):
        key = (problem.file, problem.line, problem.kind)
        known = best.get(key)
        # Report one problem a line: a certain one before a presumed one, then the leftmost.
        if known is None or _rank(problem) < _rank(known):
            best[key] = problem
    return sorted(best.values(), key=lambda p: (p.file, p.line, p.column, p.code))


def _problems(analysis: Analysis) -> Iterator[Problem]:
    if analysis.facts:
        for rule in all_rules():
            yield from rule.check(analysis)


def _rank(problem: Problem) -> tuple[bool, int]:
    return problem.presumed is not None, problem.column
