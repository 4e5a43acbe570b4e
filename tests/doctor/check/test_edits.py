"""Edits made from syntax nodes."""

from __future__ import annotations

import ast

import pytest

from stoker.doctor.check.edits import remove_argument, remove_statement
from stoker.doctor.check.rule import Edit, Fix
from stoker.doctor.check.source.module import parse
from stoker.doctor.fix.edits import apply, parses


def applied(code: str, edit: Edit | None) -> str | None:
    """The code after the edit; None where there is none."""
    if edit is None:
        return None
    new, done = apply(code, [Fix("safe", (edit,))], parses)
    assert done
    return new


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("f(1, gone=True)\n", "f(1)\n"),
        ("f('ä', gone=True, b=2)\n", "f('ä', b=2)\n"),
        ("f(gone=True, b=2)\n", "f(b=2)\n"),
        ("f(gone=True)\n", "f()\n"),
        ("f(gone=True,)\n", "f()\n"),
        ("f(a=1, **more, gone=True)\n", "f(a=1, **more)\n"),
        ("f(\n    1,\n    gone=True,  # why\n)\n", "f(\n    1,\n)\n"),
        ("f(\n    1,  # one\n    gone=True\n)\n", "f(\n    1,  # one\n)\n"),
        ("f(\n    gone=True,\n    b=2,\n)\n", "f(\n    b=2,\n)\n"),
        ("f(1,\n  gone=True)\n", "f(1)\n"),
        ("f((1), gone=True)\n", None),
        ("f(1,  # one\n  gone=True)\n", None),
    ],
)
def test_an_argument_goes_with_its_comma(code: str, expected: str | None) -> None:
    module = parse("case.py", code)
    call = next(node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    keyword = next(one for one in call.keywords if one.arg == "gone")
    assert applied(code, remove_argument(module, call, keyword)) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a = 1\ngone()\nb = 2\n", "a = 1\nb = 2\n"),
        ("a = 1\ngone()  # why\n", "a = 1\n"),
        ("a = 1\ngone()", "a = 1"),
        ("if a:\n    gone()\n    b = 2\n", "if a:\n    b = 2\n"),
        ("if a:\n    gone()\n", None),
        ("a = 1; gone()\n", None),
        ("gone(); a = 1\n", None),
        ("gone()\n", None),
    ],
)
def test_a_statement_goes_with_its_lines(code: str, expected: str | None) -> None:
    module = parse("case.py", code)
    statement = next(
        node for node in ast.walk(module.tree) if isinstance(node, ast.Expr) and ast.unparse(node) == "gone()"
    )
    assert applied(code, remove_statement(module, statement)) == expected
