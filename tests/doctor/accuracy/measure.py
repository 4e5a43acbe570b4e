"""Precision and recall over the labelled programs; `python -m tests.doctor.accuracy.measure` prints the table.

A program is a text file. `#! kind, kind` at the end of a line says what a careful reader would report there.
`### file: name.py` starts another file of the same program.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from stoker.doctor.check.checker import check_paths

PROGRAMS = Path(__file__).parent / "programs"
_FILE = re.compile(r"^### file: (\S+)$", re.MULTILINE)
_LABEL = re.compile(r"  #! ([a-z0-9, -]+)$")

# A place where a kind was or should be reported: program, file, line, kind.
Place = tuple[str, str, int, str]


@dataclass(frozen=True)
class Scores:
    """What was reported against what was labelled."""

    right: frozenset[Place]
    wrong: frozenset[Place]
    missed: frozenset[Place]
    programs: int

    @property
    def precision(self) -> float:
        """How many of the reports are right."""
        return len(self.right) / max(1, len(self.right) + len(self.wrong))

    @property
    def recall(self) -> float:
        """How many of the labels are reported."""
        return len(self.right) / max(1, len(self.right) + len(self.missed))

    def table(self) -> str:
        """Markdown: one row a kind."""
        counts = [Counter(place[3] for place in group) for group in (self.right, self.wrong, self.missed)]
        rows = ["| kind | right | wrong | missed |", "| --- | --- | --- | --- |"]
        rows += [
            f"| {kind} | {counts[0][kind]} | {counts[1][kind]} | {counts[2][kind]} |"
            for kind in sorted(set().union(*counts))
        ]
        rows.append(f"| all | {len(self.right)} | {len(self.wrong)} | {len(self.missed)} |")
        return "\n".join(rows)

    def summary(self) -> str:
        """One line of figures."""
        return f"{self.programs} programs: precision {self.precision:.2f}, recall {self.recall:.2f}"


def split(text: str) -> dict[str, str]:
    """A program's files by name."""
    parts = _FILE.split(text)
    if len(parts) == 1:
        return {"train.py": text}
    return dict(zip(parts[1::2], (part.removeprefix("\n") for part in parts[2::2]), strict=True))


def labelled(text: str) -> tuple[str, list[tuple[int, str]]]:
    """A file's text without its labels, and the labels."""
    labels, lines = [], []
    for number, line in enumerate(text.split("\n"), 1):
        found = _LABEL.search(line)
        if found:
            labels += [(number, kind.strip()) for kind in found.group(1).split(",")]
            line = line[: found.start()]
        lines.append(line)
    return "\n".join(lines), labels


def measure() -> Scores:
    """Check every program and compare with its labels."""
    reported: set[Place] = set()
    expected: set[Place] = set()
    programs = sorted(PROGRAMS.glob("*.txt"))
    for program in programs:
        with tempfile.TemporaryDirectory() as folder:
            # A project's top, so that nothing outside is looked at.
            (Path(folder) / "pyproject.toml").touch()
            paths = []
            for name, text in split(program.read_text(encoding="utf-8")).items():
                plain, labels = labelled(text)
                expected |= {(program.stem, name, line, kind) for line, kind in labels}
                path = Path(folder) / name
                path.write_text(plain, encoding="utf-8")
                paths.append(str(path))
            checked = check_paths(paths, jobs=1)
            assert checked.errors == [], program
            reported |= {(program.stem, Path(p.file).name, p.line, p.kind) for p in checked.problems}
    return Scores(
        frozenset(reported & expected),
        frozenset(reported - expected),
        frozenset(expected - reported),
        len(programs),
    )


if __name__ == "__main__":
    scores = measure()
    for title, places in (("wrong", scores.wrong), ("missed", scores.missed)):
        for place in sorted(places):
            sys.stdout.write(f"{title}: {place[0]} {place[1]}:{place[2]} {place[3]}\n")
    sys.stdout.write(scores.table() + "\n" + scores.summary() + "\n")
