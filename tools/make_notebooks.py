"""Make the notebooks of the lessons in docs/learn from their pages.

python tools/make_notebooks.py            # write them
python tools/make_notebooks.py --check    # fail if one is out of date

A program of a page becomes a cell that writes its file, a command a cell that runs it, the rest cells of text. What
the page shows of the output is left out: the notebook has its own once it is run.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat

LESSONS = Path(__file__).parent.parent / "docs" / "learn"
NOTEBOOKS = LESSONS / "notebooks"
_FENCE = re.compile(
    r'^```(?:python title="(?P<name>[\w.]+)"|(?P<console>console))\n(?P<text>.*?)^```\n', re.M | re.S
)
_LINK = re.compile(r"\]\((?!https?://)(?P<target>[^)]+)\)")


@dataclass(frozen=True)
class Program:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """What the reader types, and what it prints: the lines that the page shows of it."""

    words: str
    output: tuple[str, ...]


def pages() -> list[Path]:
    """The lessons, in order."""
    return sorted(LESSONS.glob("[0-9]*.md"))


def parts(text: str) -> list[str | Program | Command]:
    """A page from top to bottom: its text, its programs, its commands."""
    found: list[str | Program | Command] = []
    place = 0
    for fence in _FENCE.finditer(text):
        found.append(text[place : fence.start()].strip())
        place = fence.end()
        if fence["name"]:
            found.append(Program(fence["name"], fence["text"]))
        else:
            found.extend(_commands(fence["text"]))
    return [one for one in [*found, text[place:].strip()] if one]


def _commands(text: str) -> list[Command]:
    commands = []
    for block in re.split(r"^\$ ", text, flags=re.M)[1:]:
        words, *output = block.splitlines()
        commands.append(Command(words, tuple(line for line in output if line.strip())))
    return commands


def notebook(page: Path) -> str:
    """The notebook of a page, as its file holds it."""
    cells = []
    for number, part in enumerate(parts(page.read_text(encoding="utf-8"))):
        if isinstance(part, Program):
            cell = nbformat.v4.new_code_cell(f"%%writefile {part.name}\n{part.text.rstrip()}")
        elif isinstance(part, Command):
            cell = nbformat.v4.new_code_cell(f"!{part.words}")
        else:
            cell = nbformat.v4.new_markdown_cell(_LINK.sub(_from_notebook, part))
        # Otherwise drawn at random: the same page is to give the same file.
        cell["id"] = f"cell-{number}"
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    return str(nbformat.writes(made)) + "\n"


def _from_notebook(link: re.Match[str]) -> str:
    """A link between pages, as it is from the folder of the notebooks."""
    return f"](../{link['target']})"


def main() -> int:
    """Write the notebooks, or compare them."""
    wanted = {NOTEBOOKS / f"{page.stem}.ipynb": notebook(page) for page in pages()}
    if "--check" in sys.argv[1:]:
        there = {path: path.read_text(encoding="utf-8") for path in NOTEBOOKS.glob("*.ipynb")}
        if there != wanted:
            print("docs/learn/notebooks is out of date: run python tools/make_notebooks.py", file=sys.stderr)
        return int(there != wanted)
    NOTEBOOKS.mkdir(exist_ok=True)
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
