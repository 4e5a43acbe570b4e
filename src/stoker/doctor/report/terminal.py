"""Show untrusted text from runs, files and programs on the terminal, without obeying it.

A name may hold escape sequences that clear the screen, change its title or hide what follows. All text from outside
Stoker reaches a terminal only through `units.printable` or a `Terminal`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from stoker.units import printable


class Terminal(Console):
    """Rich's console, with all control characters in its text replaced. Its own colours still work."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable, made harmless."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text == "\n":
                yield segment
            else:
                yield Segment(printable(segment.text, lines=True), segment.style)
