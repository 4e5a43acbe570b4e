"""Sizes, times, numbers and foreign text as people read and write them: one form each, sizes in powers of 1024."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

# Control characters (C0, DEL, C1), and characters that change the direction of the text around them.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_OBEYED_BUT_LINES = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_LETTERS = "KMGT"
# The units that may be written: "4 KiB" and, for those who count in thousands, "4 kB".
_SIZES = {"B": 1, "kB": 1000}
_SIZES |= {f"{letter}iB": 1024**power for power, letter in enumerate(_LETTERS, 1)}
_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES |= {f"{letter}B": 1000**power for power, letter in enumerate(_LETTERS, 1)}


def size(count: float) -> str:
    """Format bytes: `512 B`, `1.2 KiB`, `3.4 MiB`."""
    if count < 1024:
        return f"{count:.0f} B"
    for letter in _LETTERS:
        count /= 1024
        # A value that would be rounded up to 1024.0 is given in the next unit.
        if count < 1023.95 or letter == _LETTERS[-1]:
            break
    return f"{count:,.1f} {letter}iB"


def bytes_of(text: str) -> int | None:
    """Return the bytes in `512 MiB`, `8GiB` or `16 kB`; None if the text is not a size with its unit."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", text)
    if match is None or match[2] not in _SIZES:
        return None
    return int(float(match[1]) * _SIZES[match[2]])


def quantity(count: int, noun: str) -> str:
    """Format `1 row` or `1,200 rows`, for nouns whose plural ends in s."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def alternatives(words: Sequence[str]) -> str:
    """Format `.csv, .tsv or .txt`."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def duration(seconds: float | None) -> str:
    """Format `5.00 s` or `12.3 ms`, or `?` if nothing was measured."""
    if seconds is None:
        return "?"
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.1f} ms"


def long_duration(seconds: float) -> str:
    """Format `3.5 h`, `12 min` or `40 s`, for times longer than a step."""
    for unit in ("d", "h", "min"):
        if seconds >= _TIMES[unit]:
            return f"{seconds / _TIMES[unit]:.3g} {unit}"
    return f"{seconds:.3g} s"


def seconds_of(text: str) -> float | None:
    """Return the seconds in `30`, `30s`, `5m`, `4h` or `1.5d`; None if the text is not a time."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text)
    if match is None or (match[2] or "s") not in _TIMES:
        return None
    return float(match[1]) * _TIMES[match[2] or "s"]


def times(factor: float) -> str:
    """Format `3.1x`, `1.02x` or `27x`."""
    if factor >= 10:
        return f"{factor:.0f}x"
    return f"{factor:.1f}x" if factor >= 1.2 or factor < 0.9 else f"{factor:.2f}x"


def percent(share: float) -> str:
    """Format a share from 0 to 1: `0.0012 %`, `3.8 %`, `57 %`, `99.9 %`; `0 %` and `100 %` mean none and all."""
    value = 100 * share
    if 99.5 <= value < 100:
        return f"{math.floor(10 * value) / 10:.1f} %"
    if value >= 9.95 or value <= 0:
        return f"{value:.0f} %"
    shown = f"{value:.{1 - math.floor(math.log10(value))}f}"
    return f"{shown.rstrip('0').rstrip('.')} %" if "." in shown else f"{shown} %"


def printable(text: str, *, lines: bool = False) -> str:
    """Make foreign text safe for a terminal: control characters are replaced; `lines` keeps line breaks."""
    return (_OBEYED_BUT_LINES if lines else _OBEYED).sub("\N{REPLACEMENT CHARACTER}", text)
