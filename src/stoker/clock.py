"""The one clock. Tests replace `now_ns`, and so does the software GPU, whose program lives in modelled time."""

from __future__ import annotations

import time
from collections.abc import Callable

# Monotonic and, on Linux, shared by all processes: the launcher's start and the program's spans compare.
now_ns: Callable[[], int] = time.monotonic_ns

# Never replaced: for what really has to happen every second.
real_ns: Callable[[], int] = time.monotonic_ns


def utc_timestamp() -> str:
    """Wall-clock time for people and file names, e.g. `2026-11-15T21:07:54Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
