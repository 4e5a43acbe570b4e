"""Draw the charts of a report, as SVG without scripts; the style sheet of the page has the colours."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

import numpy as np

from stoker.data.array_types import Array

_WIDTH, _HEIGHT, _MARGIN = 640, 260, 58
# The number of letters beyond which names are cut, and the width of a letter in the style sheet's `tick`.
_MOST_LETTERS, _LETTER = 40, 7.0
Points = Sequence[tuple[float, float]]


class Chart:
    """A frame with axes that holds lines and dots."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], names: tuple[str, str]) -> None:
        self._x, self._y = _widen_if_equal(x), _widen_if_equal(y)
        self._parts = [*self._axes(names)]

    def _place(self, x: float, y: float) -> tuple[float, float]:
        right = (x - self._x[0]) / (self._x[1] - self._x[0])
        up = (y - self._y[0]) / (self._y[1] - self._y[0])
        return _MARGIN + right * (_WIDTH - 2 * _MARGIN), _HEIGHT - _MARGIN - up * (_HEIGHT - 1.6 * _MARGIN)

    def _axes(self, names: tuple[str, str]) -> list[str]:
        parts = []
        for value in np.linspace(*self._y, 5):
            left, top = self._place(self._x[0], value)
            right, _ = self._place(self._x[1], value)
            parts.append(f'<path class="grid" d="M{left:.1f} {top:.1f}H{right:.1f}"/>')
            place = f'x="{left - 6:.1f}" y="{top + 4:.1f}" text-anchor="end"'
            parts.append(f'<text class="tick" {place}>{format_short(value)}</text>')
        for value in _ticks(*self._x):
            left, top = self._place(value, self._y[0])
            place = f'x="{left:.1f}" y="{top + 16:.1f}" text-anchor="middle"'
            parts.append(f'<text class="tick" {place}>{format_short(value)}</text>')
        parts.append(
            f'<text class="tick" x="{_WIDTH / 2}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(names[0])}</text>'
        )
        parts.append(f'<text class="tick" x="6" y="14">{escape(names[1])}</text>')
        return parts

    def line(self, points: Points, kind: str) -> None:
        """Join points with a line; `kind` is a class of the style sheet."""
        placed = [self._place(x, y) for x, y in points if np.isfinite(x) and np.isfinite(y)]
        if placed:
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in placed)
            self._parts.append(f'<path class="line {kind}" d="M{path}"/>')

    def dots(self, points: Points, kind: str, radius: float = 2.0) -> None:
        """Draw separate points."""
        for x, y in points:
            left, top = self._place(x, y)
            self._parts.append(f'<circle class="dot {kind}" cx="{left:.1f}" cy="{top:.1f}" r="{radius}"/>')

    def svg(self, label: str) -> str:
        """Return the chart; a screen reader reads `label`."""
        return _svg(f"{_WIDTH} {_HEIGHT}", label, self._parts)


def bars(rows: Sequence[tuple[str, float]], label: str) -> str:
    """Draw names with horizontal bars."""
    widest = max((abs(value) for _, value in rows), default=0) or 1
    left = _width_of([name for name, _ in rows])
    parts = []
    for number, (name, value) in enumerate(rows):
        top = number * 24
        length = max(value, 0) / widest * 360
        parts.append(_name(name, f'x="{left - 8:.0f}" y="{top + 16}" text-anchor="end"'))
        parts.append(
            f'<rect class="length" x="{left:.0f}" y="{top + 5}" width="{length:.1f}" height="14" rx="2"/>'
        )
        parts.append(
            f'<text class="tick" x="{left + 6 + length:.1f}" y="{top + 16}">{format_short(value)}</text>'
        )
    return _svg(f"{left + 360 + 76:.0f} {24 * len(rows) + 4}", label, parts)


def matrix(counts: Array, names: Sequence[str]) -> str:
    """Draw counts by true class (rows) and answer (columns). Higher counts are darker; errors have another colour."""
    side = min(44, 460 // len(names))
    left = _width_of(names)
    # The names of the columns are slanted; each ends above its column.
    above = 0.7 * left + 12
    parts = []
    for column, name in enumerate(names):
        x, y = left + (column + 0.6) * side, above - 6
        parts.append(_name(name, f'x="{x:.0f}" y="{y:.0f}" transform="rotate(-45 {x:.0f} {y:.0f})"'))
    for row, given in enumerate(counts):
        whole = max(int(given.sum()), 1)
        top = above + row * side
        parts.append(_name(names[row], f'x="{left - 8:.0f}" y="{top + side / 2 + 4:.0f}" text-anchor="end"'))
        for column, count in enumerate(given):
            kind = "right" if row == column else "wrong"
            place = f'x="{left + column * side:.0f}" y="{top:.0f}" width="{side - 1}" height="{side - 1}"'
            parts.append(f'<rect class="cell" {place}/>')
            if count:
                parts.append(
                    f'<rect class="{kind}" {place} fill-opacity="{0.12 + 0.88 * count / whole:.2f}"/>'
                )
                middle = f'x="{left + (column + 0.5) * side:.1f}" y="{top + side / 2 + 4:.1f}"'
                # Dark cells have light text.
                shade = "count over" if count / whole > 0.5 else "count"
                parts.append(f'<text class="{shade}" {middle} text-anchor="middle">{count}</text>')
    size = f"{left + side * len(names) + 0.7 * left:.0f} {above + side * len(names) + 8:.0f}"
    return _svg(size, "confusion matrix", parts)


def format_short(value: float) -> str:
    """Format a number with at most three significant digits and a letter for thousands, without an exponent: 92.3k."""
    if not math.isfinite(value):
        return str(value)
    # Rounded, 999.9 thousand is a million.
    rounded = float(f"{value:.3g}")
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(rounded) >= size:
            shown = rounded / size
            return f"{shown:.0f}{letter}" if abs(shown) >= 1000 else f"{shown:.3g}{letter}"
    return f"{rounded:.6f}".rstrip("0").rstrip(".") if 1e-4 <= abs(rounded) < 1 else f"{rounded:.3g}"


def _name(name: str, place: str) -> str:
    """Draw the name of a column or a class. A long one is cut, and shown whole under the pointer."""
    short = name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"
    title = "" if short == name else f"<title>{escape(name)}</title>"
    return f'<text class="tick" {place}>{title}{escape(short)}</text>'


def _width_of(names: Sequence[str]) -> float:
    """Return the width of the longest of these names, and a gap."""
    return 16 + _LETTER * min(max((len(name) for name in names), default=0), _MOST_LETTERS)


def _svg(size: str, label: str, parts: list[str]) -> str:
    width, height = size.split()
    shape = f'viewBox="0 0 {size}" width="{width}" height="{height}"'
    return f'<svg {shape} role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def _ticks(low: float, high: float) -> list[float]:
    """Return five places along the axis, at whole numbers if there are enough."""
    if float(low).is_integer() and float(high).is_integer() and 1 < high - low < 8:
        return [float(one) for one in range(int(low), int(high) + 1)]
    places = [float(one) for one in np.linspace(low, high, 5)]
    return sorted({float(round(one)) for one in places}) if high - low >= 8 else places


def _widen_if_equal(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def escape(value: object) -> str:
    """Escape text for HTML."""
    return html.escape(str(value))
