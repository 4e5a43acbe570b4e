"""Memory over time, of the process and of a device that reports it: a bounded number of points for any run."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

MAX_POINTS = 256
_STATM = Path("/proc/self/statm")

# Seconds since the start, bytes of the process, bytes on the device.
Point = tuple[float, int | None, int | None]


@dataclass
class MemoryHistory:
    """Points spread evenly over the run. If there are too many, the larger of each pair is kept, so that peaks stay."""

    points: list[Point] = field(default_factory=list)
    _every_s: float = 0.2

    def add(self, at_s: float, host: int | None, device: int | None) -> None:
        """Add a point. A point too close to the last one only raises that one."""
        point = (round(at_s, 3), host, device)
        if self.points and at_s - self.points[-1][0] < self._every_s:
            self.points[-1] = _take_larger(self.points[-1], point)
            return
        self.points.append(point)
        if len(self.points) > MAX_POINTS:
            pairs = zip(self.points[::2], [*self.points[1::2], self.points[-1]], strict=False)
            self.points = [_take_larger(a, b) for a, b in pairs]
            self._every_s *= 2


def _take_larger(a: Point, b: Point) -> Point:
    return a[0], _max(a[1], b[1]), _max(a[2], b[2])


def _max(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return max(a, b)


def resident_bytes() -> int | None:
    """Return the resident memory of this process; None if the system has no /proc."""
    try:
        pages = int(_STATM.read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
