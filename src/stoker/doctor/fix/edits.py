"""Apply edits to a text. They never overlap, they keep its line endings, and the result always parses."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from stoker.doctor.check.rule import Edit, Fix

_LINE_END = re.compile(r"\r\n|\r|\n")


def apply(text: str, fixes: Sequence[Fix], valid: Callable[[str], bool]) -> tuple[str, list[Fix]]:
    """Apply as many fixes as are compatible. Return the new text and the fixes applied.

    Fixes are taken in order. One that touches the place of an earlier one waits for the next round. If the
    result is not valid, fixes are added one by one, and those that break the text are left out.
    """
    chosen = _choose_compatible(text, fixes)
    new = _edit(text, [edit for fix in chosen for edit in fix.edits])
    if not chosen or valid(new):
        return new, chosen
    kept: list[Fix] = []
    for fix in chosen:
        if valid(_edit(text, [edit for one in (*kept, fix) for edit in one.edits])):
            kept.append(fix)
    return _edit(text, [edit for fix in kept for edit in fix.edits]), kept


def parses(text: str) -> bool:
    """Return whether a text is valid Python."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _choose_compatible(text: str, fixes: Sequence[Fix]) -> list[Fix]:
    starts = _line_starts(text)
    taken: list[tuple[int, int]] = []
    chosen = []
    for fix in fixes:
        spans = [_span(starts, edit) for edit in fix.edits]
        apart = all(end < start or stop < begin for begin, end in spans for start, stop in taken)
        if apart and all(begin <= end <= len(text) for begin, end in spans):
            taken += spans
            chosen.append(fix)
    return chosen


def _edit(text: str, edits: Sequence[Edit]) -> str:
    starts = _line_starts(text)
    found = _LINE_END.search(text)
    line_end = found.group() if found else "\n"
    for edit in sorted(edits, key=lambda e: _span(starts, e), reverse=True):
        begin, end = _span(starts, edit)
        text = text[:begin] + edit.text.replace("\n", line_end) + text[end:]
    return text


def _span(starts: list[int], edit: Edit) -> tuple[int, int]:
    return starts[edit.line - 1] + edit.column, starts[edit.end_line - 1] + edit.end_column


def _line_starts(text: str) -> list[int]:
    """Return the offset of each line, with lines as the parser counts them."""
    return [0, *(found.end() for found in _LINE_END.finditer(text))]
