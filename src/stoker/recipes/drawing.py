"""Charts of a report, as SVG without scripts; the style sheet of the page has the colours."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from stoker.data.array_types import Array

_WIDTH, _HEIGHT, _MARGIN = 640, 260, 48
Points = Sequence[tuple[float, float]]


class Chart:
    """A frame with axes, and lines and dots in it."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], names: tuple[str, str]) -> None:
        self._x, self._y = _apart(x), _apart(y)
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
            parts.append(
                f'<text class="tick" x="{left - 6:.1f}" y="{top + 4:.1f}" text-anchor="end">{value:.3g}</text>'
            )
        for value in _ticks(*self._x):
            left, top = self._place(value, self._y[0])
            parts.append(
                f'<text class="tick" x="{left:.1f}" y="{top + 16:.1f}" text-anchor="middle">{value:.3g}</text>'
            )
        parts.append(
            f'<text class="tick" x="{_WIDTH / 2}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(names[0])}</text>'
        )
        parts.append(f'<text class="tick" x="6" y="14">{escape(names[1])}</text>')
        return parts

    def line(self, points: Points, kind: str) -> None:
        """Points joined by a line; `kind` is a class of the style sheet."""
        placed = [self._place(x, y) for x, y in points if np.isfinite(x) and np.isfinite(y)]
        if placed:
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in placed)
            self._parts.append(f'<path class="line {kind}" d="M{path}"/>')

    def dots(self, points: Points, kind: str, radius: float = 2.0) -> None:
        """Separate points."""
        for x, y in points:
            left, top = self._place(x, y)
            self._parts.append(f'<circle class="dot {kind}" cx="{left:.1f}" cy="{top:.1f}" r="{radius}"/>')

    def svg(self, label: str) -> str:
        """The chart; a screen reader reads `label`."""
        return _svg(f"{_WIDTH} {_HEIGHT}", label, self._parts)


def bars(rows: Sequence[tuple[str, float]], label: str) -> str:
    """Names with horizontal bars."""
    widest = max((abs(value) for _, value in rows), default=0) or 1
    parts = []
    for number, (name, value) in enumerate(rows):
        top = number * 24
        length = max(value, 0) / widest * 360
        parts.append(
            f'<text class="tick" x="196" y="{top + 16}" text-anchor="end">{escape(name[:28])}</text>'
        )
        parts.append(f'<rect class="length" x="204" y="{top + 5}" width="{length:.1f}" height="14" rx="2"/>')
        parts.append(f'<text class="tick" x="{210 + length:.1f}" y="{top + 16}">{value:.3g}</text>')
    return _svg(f"{_WIDTH} {24 * len(rows) + 4}", label, parts)


def matrix(counts: Array, names: Sequence[str]) -> str:
    """Counts by true class (rows) and answer (columns); higher counts are darker, and errors have another colour."""
    side = min(44, 460 // len(names))
    left, parts = 150, []
    for row, given in enumerate(counts):
        whole = max(int(given.sum()), 1)
        top = row * side + 4
        place = f'x="{left - 8}" y="{top + side / 2 + 4:.0f}" text-anchor="end"'
        parts.append(f'<text class="tick" {place}>{escape(names[row][:20])}</text>')
        for column, count in enumerate(given):
            kind = "right" if row == column else "wrong"
            place = f'x="{left + column * side}" y="{top}" width="{side - 1}" height="{side - 1}"'
            parts.append(f'<rect class="cell" {place}/>')
            if count:
                parts.append(
                    f'<rect class="{kind}" {place} fill-opacity="{0.12 + 0.88 * count / whole:.2f}"/>'
                )
                middle = f'x="{left + (column + 0.5) * side:.1f}" y="{top + side / 2 + 4:.1f}"'
                # Dark cells have light text.
                shade = "count over" if count / whole > 0.5 else "count"
                parts.append(f'<text class="{shade}" {middle} text-anchor="middle">{count}</text>')
    size = f"{left + side * len(names) + 8} {side * len(names) + 8}"
    return _svg(size, "confusion matrix", parts)


def _svg(size: str, label: str, parts: list[str]) -> str:
    width, height = size.split()
    shape = f'viewBox="0 0 {size}" width="{width}" height="{height}"'
    return f'<svg {shape} role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def _ticks(low: float, high: float) -> list[float]:
    """Five places along the axis, at whole numbers where there are enough."""
    if float(low).is_integer() and float(high).is_integer() and 1 < high - low < 8:
        return [float(one) for one in range(int(low), int(high) + 1)]
    places = [float(one) for one in np.linspace(low, high, 5)]
    return sorted({float(round(one)) for one in places}) if high - low >= 8 else places


def _apart(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def escape(value: object) -> str:
    """Text for HTML."""
    return html.escape(str(value))
