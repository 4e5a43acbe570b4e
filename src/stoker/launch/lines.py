"""Output cut into lines. A progress bar that draws over itself becomes a line now and then."""

from __future__ import annotations

from stoker.periodic import Every

_BAR_EVERY_S = 5.0
# A line without an end is shown in pieces of this size.
_LONGEST = 64 * 1024


class Lines:
    """The lines of one stream, as its bytes arrive."""

    def __init__(self) -> None:
        self._rest = b""
        self._bar = Every(seconds=_BAR_EVERY_S)

    def add(self, data: bytes) -> list[str]:
        """What has become complete."""
        *whole, rest = (self._rest + data).split(b"\n")
        found = [_shown(line) for line in whole]
        if b"\r" in rest:
            if self._bar.due():
                self._bar.mark()
                found.append(_shown(rest))
            # Of a bar only what is drawn last will ever be seen.
            rest = rest[rest.rstrip(b"\r").rfind(b"\r") + 1 :]
        elif len(rest) > _LONGEST:
            found.append(_shown(rest))
            rest = b""
        self._rest = rest
        return found

    def end(self) -> list[str]:
        """What is left without an end."""
        rest, self._rest = self._rest, b""
        return [_shown(rest)] if rest else []


def _shown(line: bytes) -> str:
    """As a terminal would show it: what was drawn last."""
    return line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")
