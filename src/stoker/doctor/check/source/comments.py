"""`# stoker: allow[kind]` comments: which kinds are allowed on which lines."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

_ALLOW = re.compile(r"#\s*stoker:\s*allow(-file)?\s*\[([^\]]*)\]")


@dataclass(frozen=True)
class Allow:
    """One kind or code that a comment allows; `whole_file` ones count everywhere."""

    line: int
    column: int
    name: str
    whole_file: bool
    # The comment stands on a line of its own: it speaks for the next line.
    alone: bool

    def covers(self, line: int, end_line: int, kind: str, code: str) -> bool:
        """Whether it allows this kind at these lines."""
        if self.name not in (kind, code):
            return False
        if self.whole_file or line <= self.line <= end_line:
            return True
        return self.alone and self.line + 1 == line


def allows(text: str) -> tuple[Allow, ...]:
    """Every allow-comment of a file."""
    if "stoker:" not in text:
        return ()
    return tuple(_read(text))


def _read(text: str) -> Iterator[Allow]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type != tokenize.COMMENT:
                continue
            found = _ALLOW.search(token.string)
            if found is None:
                continue
            line, column = token.start
            alone = token.line[:column].strip() == ""
            for name in found.group(2).split(","):
                if name.strip():
                    yield Allow(line, column + 1, name.strip(), found.group(1) is not None, alone)
    except (tokenize.TokenError, IndentationError):
        # The parser accepted the file; what the tokenizer cannot finish holds no further comment.
        return
