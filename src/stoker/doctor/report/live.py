"""One live line at the bottom of the terminal while the program runs.

The last row is taken out of the terminal's scrolling region, so that what the program prints scrolls above it
and never mixes with it. Closing gives the row back.
"""

from __future__ import annotations

import os
from typing import TextIO

from stoker.records import Record
from stoker.units import quantity


def has_rows(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with addressable rows. The `!` of a notebook's cell only looks like one."""
    return stream.isatty() and "JPY_PARENT_PID" not in os.environ


class LiveLine:
    """The reserved last row of a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rows = 0

    def open(self) -> None:
        """Reserve the row."""
        self._fit()

    def close(self) -> None:
        """Give the row back, empty."""
        if self._rows:
            # Save the cursor, clear our row, scroll the whole screen again, restore the cursor.
            self._write(f"\x1b7\x1b[{self._rows};1H\x1b[2K\x1b[r\x1b8")
            self._rows = 0

    def draw(self, record: Record) -> None:
        """Show the record up to now."""
        columns = self._fit()
        if self._rows:
            self._write(f"\x1b7\x1b[{self._rows};1H\x1b[2K\x1b[2m{text(record)[: columns - 1]}\x1b[0m\x1b8")

    def _fit(self) -> int:
        """Follow the terminal's size, and return its width."""
        size = os.get_terminal_size(self._stream.fileno())
        if size.lines != self._rows and size.lines > 2:
            self._rows = size.lines
            # Write a line feed first, so that the cursor is not on the row we take.
            self._write(f"\n\x1b7\x1b[1;{self._rows - 1}r\x1b8\x1b[1A")
        return size.columns

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def text(record: Record) -> str:
    """Return the line: `stoker  12 s  300 steps  24.4 steps/s  device 21 % busy`."""
    parts = [f"stoker  {record.wall_s:.0f} s", quantity(record.steps, "step")]
    if record.steps_per_s is not None:
        parts.append(f"{record.steps_per_s:.1f} steps/s")
    if record.device.busy is not None:
        parts.append(f"device {record.device.busy:.0%} busy")
    return "  ".join(parts)
