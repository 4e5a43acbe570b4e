"""A rule: a stall that can be found by reading the source. It has a severity and a page, and judges the facts."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from stoker.doctor.check.source.facts import Analysis, At
from stoker.doctor.check.source.module import SourceModule
from stoker.doctor.stall import Stall


@dataclass(frozen=True)
class Edit:
    """A replacement of the text between two places. Lines count from 1; columns count characters from 0."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class Fix:
    """Edits that together repair a problem. A `safe` fix leaves the program's results unchanged."""

    safety: str
    edits: tuple[Edit, ...]
    message: str = ""


@dataclass(frozen=True)
class Problem:
    """A kind of stall, found at one place by reading the code."""

    kind: str
    code: str
    file: str
    line: int
    column: int
    end_line: int
    message: str
    severity: str
    fix: Fix | None = None
    end_column: int = 0
    source: str = ""
    # The cell of a notebook, counted from 1; `line` then counts from the start of the cell.
    cell: int | None = None
    # The price that a saved run gives this line, e.g. 3.1.
    measured: float | None = None
    # "modelled" if that price was not measured; "" if the run does not say.
    basis: str = ""
    # If the problem rests on a guess about a function without known callers: the line of its `def`.
    presumed: int | None = None


class Rule(Stall, ABC):
    """A stall that can be found by reading the source."""

    severity: ClassVar[str]
    # The texts of the rule's page, together with `why`; its first cases are the examples.
    what: ClassVar[str]
    fix_safety: ClassVar[str] = "There is no automatic fix."
    known_problems: ClassVar[str] = "None known."

    @abstractmethod
    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Yield the problems that the facts show."""

    @property
    def fixable(self) -> bool:
        """Whether some case shows a fix."""
        return any(case.fixed is not None for case in self.bad)

    def problem(self, at: At, message: str, fix: Fix | None = None, node: ast.AST | None = None) -> Problem:
        """Make a problem at a place, or at another node of the same file."""
        return self.problem_at(at.module, node or at.node, message, fix, at)

    def problem_at(
        self, module: SourceModule, node: ast.AST, message: str, fix: Fix | None = None, at: At | None = None
    ) -> Problem:
        """Make a problem at a node of any file."""
        line, column = start(module, node)
        presumed = at.presumed.lineno if at is not None and at.presumed is not None else None
        source = module.lines[line - 1] if line <= len(module.lines) else ""
        end_line = int(getattr(node, "end_lineno", None) or line)
        end_offset = int(getattr(node, "end_col_offset", None) or 0)
        return Problem(
            self.slug,
            self.code,
            module.path,
            line,
            column + 1,
            end_line,
            message,
            self.severity,
            fix,
            character(module, end_line, end_offset) + 1,
            source,
            presumed=presumed,
        )


def start(module: SourceModule, node: ast.AST) -> tuple[int, int]:
    """Return where to show a node. A method call is shown at its method's name, not at the start of its chain."""
    line, offset = int(getattr(node, "lineno", 1)), int(getattr(node, "col_offset", 0))
    method = node.func if isinstance(node, ast.Call) else None
    if isinstance(method, ast.Attribute) and _has_call(method.value):
        line, offset = int(method.end_lineno or line), int(method.end_col_offset or 0)
        offset = max(0, offset - len(method.attr.encode()))
    return line, character(module, line, offset)


def _has_call(node: ast.expr) -> bool:
    return any(isinstance(child, ast.Call) for child in ast.walk(node))


def character(module: SourceModule, line: int, offset: int) -> int:
    """Convert the parser's offset, in bytes of UTF-8, to characters, which people and editors count."""
    if line > len(module.lines):
        return offset
    text = module.lines[line - 1]
    if text.isascii():
        return offset
    return len(text.encode("utf-8")[:offset].decode("utf-8", "ignore"))


def describe(node: ast.AST, limit: int = 40) -> str:
    """Return an expression for a message: in back quotes, and shortened if it is long."""
    text = " ".join(ast.unparse(node).split())
    return f"`{text if len(text) <= limit else text[: limit - 1] + '…'}`"
