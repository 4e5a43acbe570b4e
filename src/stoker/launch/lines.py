"""Splits output into lines. A progress bar that redraws itself becomes a line every few seconds."""

from __future__ import annotations

from stoker.periodic import Every

_BAR_EVERY_S = 5.0
# An unfinished line is passed on in pieces of this size.
_LONGEST = 64 * 1024


class LineSplitter:
    """The lines of one stream, as its bytes arrive."""

    def __init__(self) -> None:
        self._rest = b""
        self._bar = Every(seconds=_BAR_EVERY_S)

    def add(self, data: bytes) -> list[str]:
        """Take bytes, and return the lines they complete."""
        *complete, rest = (self._rest + data).split(b"\n")
        lines = [_render(line) for line in complete]
        if b"\r" in rest:
            if self._bar.due():
                self._bar.mark()
                lines.append(_render(rest))
            # Keep only the last drawing of a bar: nothing else will be shown.
            rest = rest[rest.rstrip(b"\r").rfind(b"\r") + 1 :]
        elif len(rest) > _LONGEST:
            lines.append(_render(rest))
            rest = b""
        self._rest = rest
        return lines

    def finish(self) -> list[str]:
        """Return the last line if it is unfinished."""
        rest, self._rest = self._rest, b""
        return [_render(rest)] if rest else []


def _render(line: bytes) -> str:
    """Return the line as a terminal shows it: only what was drawn last."""
    return line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")
