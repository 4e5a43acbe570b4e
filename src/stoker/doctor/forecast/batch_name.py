"""The place where a program sets its batch, given by name: an option, or a name at the top of its file."""

from __future__ import annotations

import ast
from pathlib import Path

from stoker.doctor.forecast.child_request import BatchPlace
from stoker.errors import UsageError


def place_from_name(name: str, program: str, arguments: list[str]) -> BatchPlace:
    """Return the place that `--batch-arg` names: an option of the program, or a name set at the top of its file.

    Raises:
        UsageError: the file sets no such name.
    """
    if name.startswith("-"):
        return BatchPlace("option", _rows_of_option(name, arguments), name=name)
    for statement in _read(program).body:
        value = _value_of(statement, name)
        if value is not None:
            rows = value.value if isinstance(value, ast.Constant) else None
            return BatchPlace(
                "name",
                rows if isinstance(rows, int) else None,
                name=name,
                file=program,
                line=statement.lineno,
            )
    raise UsageError(
        f"{program} sets no {name} at top level: --batch-arg takes such a name, or an option like --batch"
    )


def change_arguments(place: BatchPlace, rows: int, arguments: list[str]) -> list[str]:
    """Return the program's arguments with another batch."""
    changed, done = list(arguments), False
    for number, word in enumerate(changed):
        if word == place.name and number + 1 < len(changed):
            changed[number + 1], done = str(rows), True
        elif word.startswith(f"{place.name}="):
            changed[number], done = f"{place.name}={rows}", True
    return changed if done else [*changed, place.name, str(rows)]


def change_source(place: BatchPlace, rows: int, program: str) -> ast.Module:
    """Return the program with another value for the name that sets its batch."""
    tree = _read(program)
    for statement in tree.body:
        value = _value_of(statement, place.name)
        if value is not None:
            assert isinstance(statement, (ast.Assign, ast.AnnAssign))
            statement.value = ast.copy_location(ast.Constant(rows), value)
    return tree


def _rows_of_option(name: str, arguments: list[str]) -> int | None:
    for number, word in enumerate(arguments):
        text = word.removeprefix(f"{name}=") if word.startswith(f"{name}=") else ""
        if word == name and number + 1 < len(arguments):
            text = arguments[number + 1]
        if text.isdecimal():
            return int(text)
    return None


def _read(program: str) -> ast.Module:
    try:
        return ast.parse(Path(program).read_bytes(), program)
    except (OSError, SyntaxError, ValueError) as error:
        raise UsageError(f"cannot read {program}: {error}") from None


def _value_of(statement: ast.stmt, name: str) -> ast.expr | None:
    """Return what a statement assigns to a name; None if it assigns nothing to that name."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        return None
    named = any(isinstance(target, ast.Name) and target.id == name for target in targets)
    return statement.value if named else None
