"""Read `# stoker: ignore[kind]` comments: which kinds to ignore on which lines. `allow` means the same."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stoker.doctor.check.source.notebook import Cell

_DIRECTIVE = re.compile(r"#\s*stoker:\s*(?:ignore|allow)(-file)?(?:\s*\[([^\]]*)\]|(?=\s*(?:$|#|--)))")
# A single word, alone or before brackets, is meant as a directive. Prose that begins with "stoker:" is not.
_ATTEMPT = re.compile(r"#\s*stoker:\s*([\w-]+)\s*(?:\[|\(|$)|#\s*stoker:\s*((?:ignore|allow)(?:-file)?)\b")
# The name that a comment without brackets stands for.
EVERYTHING = ""
_NOT_CODE = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT})


@dataclass(frozen=True)
class Allow:
    """A kind, code or family that a comment ignores: on its line, or everywhere if `whole_file` is set."""

    line: int
    column: int
    name: str
    whole_file: bool
    # The line the comment applies to: its own, or the next line of code if the comment stands alone.
    subject: int
    # The cell of a notebook; lines then count from the start of that cell.
    cell: int | None = None
    # Whether the comment begins with "stoker:" but cannot be read. It then ignores nothing.
    unreadable: bool = False

    def covers(self, line: int, end_line: int, kind: str, code: str, cell: int | None = None) -> bool:
        """Return whether the comment ignores this kind on these lines."""
        if self.unreadable or not (self.name == kind or code.startswith(self.name)):
            return False
        if self.whole_file:
            return True
        same_lines = line <= self.line <= end_line or self.subject == line
        return same_lines and self.cell == cell


def allows(text: str, cells: Sequence[Cell] = ()) -> tuple[Allow, ...]:
    """Return every ignore comment of a file, or of the joined text of a notebook's cells."""
    if "stoker:" not in text:
        return ()
    found = _read(text)
    return tuple(_move_into_cell(allow, cells) for allow in found) if cells else tuple(found)


def _read(text: str) -> Iterator[Allow]:
    waiting: list[tuple[tokenize.TokenInfo, bool]] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and "stoker:" in token.string:
                alone = token.line[: token.start[1]].strip() == ""
                waiting.append((token, alone))
            elif token.type not in _NOT_CODE or token.type == tokenize.NEWLINE:
                yield from _flush(waiting, token.start[0])
    except (tokenize.TokenError, IndentationError):
        # The parser accepted the file, so the rest that the tokenizer cannot read holds no comment.
        pass
    yield from _flush(waiting, 0)


def _flush(waiting: list[tuple[tokenize.TokenInfo, bool]], next_code: int) -> Iterator[Allow]:
    """Yield the comments read since the last line of code. One that stands alone applies to the next line of code."""
    for token, alone in waiting:
        yield from _parse(token, next_code if alone else token.start[0])
    waiting.clear()


def _parse(token: tokenize.TokenInfo, subject: int) -> Iterator[Allow]:
    line, column = token.start[0], token.start[1] + 1
    found = _DIRECTIVE.search(token.string)
    if found is None:
        attempt = _ATTEMPT.search(token.string)
        if attempt is not None:
            yield Allow(line, column, attempt[1] or attempt[2], False, subject, unreadable=True)
        return
    whole_file = found[1] is not None
    if found[2] is None:
        yield Allow(line, column, EVERYTHING, whole_file, subject)
        return
    for name in filter(None, map(str.strip, found[2].split(","))):
        yield Allow(line, column, name, whole_file, subject)


def _move_into_cell(allow: Allow, cells: Sequence[Cell]) -> Allow:
    """Return a comment with its lines counted from the start of its cell, as for problems."""
    for cell in cells:
        if cell.first <= allow.line <= cell.last:
            by = 1 - cell.first
            return Allow(
                allow.line + by,
                allow.column,
                allow.name,
                allow.whole_file,
                allow.subject + by,
                cell.number,
                allow.unreadable,
            )
    return allow
