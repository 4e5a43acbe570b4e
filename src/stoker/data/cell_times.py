"""Times of the day and durations as people write them: 6:02 PM, 18:02, 1:34:24, 1h 34m."""

from __future__ import annotations

import re

_CLOCK = re.compile(r"(\d{1,3}):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?(?:\s*([AaPp])\.?[Mm]\.?)?")
_PARTS = re.compile(
    r"(?:(\d+)\s*(?:h|hr|hrs|hours?)\.?)?\s*(?:(\d+)\s*(?:m|min|mins|minutes?)\.?)?\s*"
    r"(?:(\d+(?:\.\d+)?)\s*(?:s|sec|secs|seconds?)\.?)?",
    re.IGNORECASE,
)
_HALF_DAY = 12


def read_time(text: str) -> float | None:
    """Return the seconds of a duration, or since midnight; None if the text is something else.

    A single number with a unit, such as 90m, does not count, as it may be a length.
    """
    text = text.strip()
    if found := _CLOCK.fullmatch(text):
        hours, half = int(found[1]), (found[4] or "").lower()
        if half and not 1 <= hours <= _HALF_DAY:
            return None
        if half:
            hours = hours % _HALF_DAY + (_HALF_DAY if half == "p" else 0)
        return hours * 3600 + int(found[2]) * 60 + float(found[3] or 0)
    parts = _PARTS.fullmatch(text)
    if parts is None or sum(one is not None for one in parts.groups()) < 2:
        return None
    return int(parts[1] or 0) * 3600 + int(parts[2] or 0) * 60 + float(parts[3] or 0)
