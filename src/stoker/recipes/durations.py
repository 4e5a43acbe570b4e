"""How long something may take, as people write it."""

from __future__ import annotations

import re
from typing import Any

from stoker.errors import ArgumentError

_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds(value: Any) -> float:
    """The seconds in `90`, `"90s"`, `"10m"`, `"10min"`, `"1.5h"`.

    Raises:
        ArgumentError: it is none of these, or no time at all.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h)?\s*", str(value))
    found = float(match[1]) * _SECONDS[match[2] or "s"] if match else 0.0
    if found <= 0:
        raise ArgumentError(f"time={value!r}: give a duration such as '90s', '10min' or '1.5h'")
    return found
