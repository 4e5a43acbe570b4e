"""Turn findings into new files: edit in memory, in rounds, until nothing is left to do, then write whole files."""

from __future__ import annotations

import difflib
import os
import tokenize
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from stoker.doctor.check.checker import FileResult, check_overlaid, combine
from stoker.doctor.check.rule import Fix, Problem
from stoker.doctor.check.source import notebook
from stoker.doctor.check.source.files import decode, shorten_path
from stoker.doctor.fix.edits import apply, parses
from stoker.files import write_atomically

# One fix can make another possible. No file needs more rounds than this.
_ROUNDS = 8


@dataclass(frozen=True)
class FileChange:
    """A file's content before and after, and the problems fixed in it."""

    path: str
    before: bytes
    after: bytes
    fixed: tuple[Problem, ...]

    def write(self) -> None:
        """Replace the file atomically, keeping its permissions."""
        write_atomically(Path(self.path), self.after, durable=True)

    def undo(self) -> None:
        """Restore the old content."""
        write_atomically(Path(self.path), self.before, durable=True)

    def diff(self) -> str:
        """Return a unified diff."""
        name = shorten_path(self.path)
        old, new = (decode(self.path, data).splitlines(keepends=True) for data in (self.before, self.after))
        return "".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"))


@dataclass(frozen=True)
class RepairPlan:
    """The changes that fixing files would make, the errors of unreadable files, and the problems that would be left."""

    changes: list[FileChange]
    errors: list[str]
    left: list[Problem]


def plan(
    paths: Sequence[str], wanted: Collection[str], reports: Callable[[str, str, str], bool]
) -> RepairPlan:
    """Plan the repair of these files, without writing them.

    `wanted` holds the safeties of the fixes to apply; `reports` says whether a kind is reported in a file.
    """
    files = [os.path.abspath(path) for path in paths]
    overlay: dict[str, bytes] = {}
    before: dict[str, bytes] = {}
    fixed: dict[str, list[Problem]] = {}
    results = {result.path: result for result in check_overlaid(files, overlay)}
    for _ in range(_ROUNDS):
        checked = combine(list(results.values()))
        changed = False
        for path, problems in _group_fixable(checked.problems, wanted, reports).items():
            data = overlay.get(path) or Path(path).read_bytes()
            new, done = _apply(path, data, problems)
            if done and new != data:
                before.setdefault(path, data)
                overlay[path] = new
                fixed.setdefault(path, []).extend(done)
                changed = True
        if not changed:
            break
        affected = [path for path in files if _depends_on_overlay(results[path], overlay)]
        results.update({result.path: result for result in check_overlaid(affected, overlay)})
    changes = [FileChange(path, before[path], overlay[path], tuple(fixed[path])) for path in sorted(overlay)]
    checked = combine(list(results.values()))
    left = [problem for problem in checked.problems if reports(problem.kind, problem.code, problem.file)]
    return RepairPlan(changes, checked.errors, left)


def _group_fixable(
    problems: list[Problem], wanted: Collection[str], reports: Callable[[str, str, str], bool]
) -> dict[str, list[Problem]]:
    by_file: dict[str, list[Problem]] = {}
    for problem in problems:
        offered = problem.fix is not None and problem.fix.safety in wanted
        if offered and reports(problem.kind, problem.code, problem.file):
            by_file.setdefault(problem.file, []).append(problem)
    return by_file


def _depends_on_overlay(result: FileResult, overlay: dict[str, bytes]) -> bool:
    return result.path in overlay or any(path in overlay for path in result.consulted)


def _apply(path: str, data: bytes, problems: list[Problem]) -> tuple[bytes, list[Problem]]:
    text = decode(path, data)
    edit = _notebook if path.endswith(".ipynb") else _script
    new, done = edit(path, text, problems)
    kept = [problem for problem in problems if problem.fix in done]
    return _encode(data, new), kept


def _script(path: str, text: str, problems: list[Problem]) -> tuple[str, list[Fix]]:
    return apply(text, [p.fix for p in problems if p.fix is not None], parses)


def _notebook(path: str, text: str, problems: list[Problem]) -> tuple[str, list[Fix]]:
    """Edit each cell separately. Magics stay unchanged, since no problem is ever found in them."""
    _, cells = notebook.read_cells(path, text)
    lines = notebook.read_raw(path, text).split("\n")
    sources: dict[int, str] = {}
    done: list[Fix] = []
    for cell in cells:
        fixes = [p.fix for p in problems if p.cell == cell.number and p.fix is not None]
        height = cell.last - cell.first + 1
        # A fix that spans two cells is left to the user.
        fixes = [fix for fix in fixes if all(e.line >= 1 and e.end_line <= height for e in fix.edits)]
        if fixes:
            source = "\n".join(lines[cell.first - 1 : cell.last])
            new, applied = apply(source, fixes, _cell_parses)
            sources[cell.number] = new
            done += applied
    return notebook.replace_cells(text, sources) if done else text, done


def _cell_parses(source: str) -> bool:
    return parses("\n".join(notebook.python_lines(source)))


def _encode(old: bytes, text: str) -> bytes:
    if old.startswith(b"\xef\xbb\xbf"):
        return b"\xef\xbb\xbf" + text.encode("utf-8")
    try:
        old.decode("utf-8")
        return text.encode("utf-8")
    except UnicodeDecodeError:
        encoding, _ = tokenize.detect_encoding(BytesIO(old).readline)
        return text.encode(encoding)
