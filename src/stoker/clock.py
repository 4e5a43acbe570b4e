"""The clock that all code uses. Tests replace `now_ns`; so does the software GPU, with its modelled time."""

from __future__ import annotations

import time
from collections.abc import Callable

# This clock is monotonic and, on Linux, shared by all processes, so the launcher's start and the program's spans
# compare.
now_ns: Callable[[], int] = time.monotonic_ns

# Never replaced: this one is for work that must be done every so many real seconds.
real_ns: Callable[[], int] = time.monotonic_ns


def utc_timestamp() -> str:
    """Return the wall-clock time for people and file names, such as `2026-11-15T21:07:54Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
