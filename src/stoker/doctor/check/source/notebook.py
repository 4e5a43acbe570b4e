"""Join a notebook's code cells into one Python text of as many lines, with magics and shell lines neutralized."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from stoker.doctor.check.source.module import SourceError

# Cell magics that leave the rest of the cell Python.
_PYTHON_MAGICS = frozenset({"time", "timeit", "capture", "prun", "script python", "python", "python3"})
_ASSIGNED = re.compile(r"^(\s*[\w.,\s\[\]]+=\s*)[!%].*$")


@dataclass(frozen=True)
class Cell:
    """A code cell: its number among all cells, from 1, and its lines in the joined text."""

    number: int
    first: int
    last: int


def read_cells(path: str, text: str) -> tuple[str, tuple[Cell, ...]]:
    """Return the joined Python text of a notebook, with magics neutralized, and the places of its cells.

    Raises:
        SourceError: the text is not a notebook.
    """
    sources = _sources(path, text)
    lines = [python_lines(source) for _, source in sources]
    return _join(lines), _cells(sources, lines)


def read_raw(path: str, text: str) -> str:
    """Return the joined, unchanged text of a notebook's code cells. Its lines match those of `read_cells`."""
    return _join([source.split("\n") for _, source in _sources(path, text)])


def _join(cells: list[list[str]]) -> str:
    return "\n".join(line for lines in cells for line in lines) + "\n"


def _cells(sources: list[tuple[int, str]], lines: list[list[str]]) -> tuple[Cell, ...]:
    cells, first = [], 1
    for (number, _), body in zip(sources, lines, strict=True):
        cells.append(Cell(number, first, first + len(body) - 1))
        first += len(body)
    return tuple(cells)


def _sources(path: str, text: str) -> list[tuple[int, str]]:
    """Return the number and the text of each code cell.

    Raises:
        SourceError: the text is not a notebook.
    """
    try:
        data = json.loads(text)
        return [
            (number, "".join(cell["source"]))
            for number, cell in enumerate(data["cells"], 1)
            if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{path}:1:1: is not a notebook: {error}") from error


def python_lines(source: str) -> list[str]:
    """Return a cell's lines with magics neutralized."""
    lines = source.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%"):
        magic = first[2:].split(None, 1)[0] if first[2:].strip() else ""
        if magic not in _PYTHON_MAGICS:
            return ["pass"] * len(lines)
        lines = ["pass" if line is first else line for line in lines]
    return [_neutralize_magic(line) for line in lines]


def _neutralize_magic(line: str) -> str:
    """Return the line; a magic becomes a statement that does nothing."""
    stripped = line.lstrip()
    if stripped.startswith(("%", "!")) or (stripped.startswith("?") or stripped.rstrip().endswith("?")):
        return line[: len(line) - len(stripped)] + "pass"
    assigned = _ASSIGNED.match(line)
    return assigned.group(1) + "None" if assigned else line


def replace_cells(text: str, new: dict[int, str]) -> str:
    """Return the notebook's text with the source of some cells, given by number, replaced."""
    data = json.loads(text)
    for number, source in new.items():
        cell = data["cells"][number - 1]
        cell["source"] = _keep_form(cell["source"], source)
    indent = 1 if "\n" in text.strip() else None
    ending = "\n" if text.endswith("\n") else ""
    return json.dumps(data, indent=indent, ensure_ascii=False) + ending


def _keep_form(old: object, source: str) -> object:
    """Return new text in the form of the old cell's source: a list of lines or one string."""
    if isinstance(old, str):
        return source
    parts = source.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
