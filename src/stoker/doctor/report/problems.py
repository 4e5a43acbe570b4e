"""Problems found by reading the code, in each format: text, concise, JSON, SARIF, GitHub annotations.

Every format is a function of the same list. It returns text, which the command prints.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from stoker.doctor.check.registry import all_rules
from stoker.doctor.check.rule import Problem
from stoker.doctor.report.line_prices import describe_gain
from stoker.doctor.stall import find_stall
from stoker.version import __version__

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_GITHUB = {"error": "error", "warning": "warning", "info": "notice"}


def place(problem: Problem) -> str:
    """Return the place as `file:line:column`, or `file:cell 3:line:column` in a notebook."""
    cell = "" if problem.cell is None else f"cell {problem.cell}:"
    return f"{problem.file}:{cell}{problem.line}:{problem.column}"


def concise(problems: Sequence[Problem]) -> str:
    """Return each problem as one line."""
    return "".join(_line(problem) + "\n" for problem in problems)


def _line(problem: Problem) -> str:
    mark = "" if problem.fix is None else "[*] " if problem.fix.safety == "safe" else "[unsafe fix] "
    return f"{place(problem)}: {problem.code} {mark}{problem.kind}: {problem.message}{_price(problem)}"


def _price(problem: Problem) -> str:
    if problem.measured is None:
        return ""
    return f" ({describe_gain(problem.measured)}, {problem.basis or 'measured'})"


def text(problems: Sequence[Problem]) -> str:
    """Return each problem as one line, followed by its source line and what to do about it."""
    parts = []
    for problem in problems:
        parts.append(_line(problem) + "\n")
        if problem.source.strip():
            parts.append(_excerpt(problem))
        stall = find_stall(problem.kind)
        if stall is not None:
            parts.append(f"  = {stall.remedy}\n")
        parts.append("\n")
    return "".join(parts)


def _excerpt(problem: Problem) -> str:
    number = str(problem.line)
    source = problem.source.expandtabs(4)
    # A tab before the column is wider than one character when expanded.
    lead = len(problem.source[: problem.column - 1].expandtabs(4))
    single = problem.end_line == problem.line
    width = max(1, (problem.end_column - problem.column) if single else len(source) - lead)
    margin = " " * len(number)
    return f"{margin} |\n{number} | {source}\n{margin} | {' ' * lead}{'^' * width}\n"


def as_json(problems: Sequence[Problem]) -> str:
    """Return a list of JSON objects. Other programs read it: add fields, but never rename them."""
    return json.dumps([to_json(problem) for problem in problems], indent=2) + "\n"


def to_json(problem: Problem) -> dict[str, Any]:
    """Return a problem as plain JSON values."""
    fix = None
    if problem.fix is not None:
        fix = {
            "safety": problem.fix.safety,
            "message": problem.fix.message,
            "edits": [
                {
                    "line": edit.line,
                    "column": edit.column + 1,
                    "end_line": edit.end_line,
                    "end_column": edit.end_column + 1,
                    "text": edit.text,
                }
                for edit in problem.fix.edits
            ],
        }
    return {
        "kind": problem.kind,
        "code": problem.code,
        "file": problem.file,
        "cell": problem.cell,
        "line": problem.line,
        "column": problem.column,
        "end_line": problem.end_line,
        "end_column": problem.end_column,
        "message": problem.message,
        "severity": problem.severity,
        "evidence": "static" if problem.measured is None else "measured",
        "measured_speedup": problem.measured,
        "basis": problem.basis or None,
        "source": problem.source,
        "fix": fix,
    }


def sarif(problems: Sequence[Problem]) -> str:
    """Return problems as SARIF 2.1.0, for code scanning."""
    rules = [
        {
            "id": rule.code,
            "name": rule.slug,
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": rule.what},
            "help": {"text": rule.remedy},
            "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        }
        for rule in all_rules()
    ]
    results = [
        {
            "ruleId": problem.code,
            "level": _LEVELS[problem.severity],
            "message": {"text": _sarif_message(problem)},
            "locations": [{"physicalLocation": _location(problem)}],
        }
        for problem in problems
    ]
    driver = {"name": "stoker", "version": __version__, "rules": rules}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(log, indent=2) + "\n"


def _sarif_message(problem: Problem) -> str:
    cell = "" if problem.cell is None else f"cell {problem.cell}, line {problem.line}: "
    return f"{cell}{problem.message}{_price(problem)}"


def _location(problem: Problem) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": problem.file.replace("\\", "/")}}
    # The lines of a notebook's cell are not the lines of its file.
    if problem.cell is None:
        region = {"startLine": problem.line, "startColumn": problem.column, "endLine": problem.end_line}
        location["region"] = {**region, "endColumn": problem.end_column} if problem.end_column else region
    return location


def github(problems: Sequence[Problem]) -> str:
    """Return problems as annotations for a GitHub workflow."""
    return "".join(
        f"::{_GITHUB[p.severity]} title=stoker {p.code},file={_escape(p.file)}{_lines(p)}::{_message(_line(p))}\n"
        for p in problems
    )


def _lines(problem: Problem) -> str:
    if problem.cell is not None:
        return ""
    return f",line={problem.line},col={problem.column},endLine={problem.end_line}"


def _message(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape(value: str) -> str:
    return _message(value).replace(":", "%3A").replace(",", "%2C")


def statistics(problems: Sequence[Problem]) -> str:
    """Say how many times each kind was found, most frequent first."""
    counts = Counter((problem.code, problem.kind) for problem in problems)
    fixable = Counter(problem.kind for problem in problems if problem.fix is not None)
    width = max((len(str(count)) for count in counts.values()), default=1)
    lines = []
    for (code, kind), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        mark = "[*]" if fixable[kind] else "[ ]"
        lines.append(f"{count:>{width}}  {code}  {mark}  {kind}\n")
    return "".join(lines)


FORMATS: dict[str, Callable[[Sequence[Problem]], str]] = {
    "text": text,
    "concise": concise,
    "json": as_json,
    "sarif": sarif,
    "github": github,
}
