"""Text from runs, files and programs on the terminal: it is shown, and never obeyed.

A name may hold escape sequences that clear the screen, change its title or hide what follows. Everything that people
gave, and that reaches a terminal, goes through `units.printable` or a `Terminal`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from stoker.units import printable


class Terminal(Console):
    """Rich's console, whose text has no characters that a terminal obeys; its own colours are no text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of something, made harmless."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text == "\n":
                yield segment
            else:
                yield Segment(printable(segment.text, lines=True), segment.style)
