"""The user's source around each finding and each large owner of memory.

The excerpts are kept with the record, so that a page drawn next year shows today's lines.
"""

from __future__ import annotations

import linecache
from collections import defaultdict
from collections.abc import Iterable

from stoker.records import Excerpt, Finding, MemoryOwner
from stoker.redaction import redact_text

_AROUND = 6
_MAX_EXCERPTS = 200
_MAX_WIDTH = 300


def excerpts(findings: Iterable[Finding | MemoryOwner], paths: dict[str, str]) -> list[Excerpt]:
    """Return the lines around each finding or owner, joined where they touch; `paths` maps displayed names to files.

    The costliest come first, so that they get an excerpt if there are too many.
    """
    wanted: defaultdict[str, list[int]] = defaultdict(list)
    for finding in list(findings)[:_MAX_EXCERPTS]:
        if finding.line > 0 and finding.line not in wanted[finding.file]:
            wanted[finding.file].append(finding.line)
    found = []
    for file, numbers in wanted.items():
        lines = linecache.getlines(paths.get(file, file))
        for first, last in _ranges(sorted(numbers), len(lines)):
            text = [line.rstrip("\n\r")[:_MAX_WIDTH] for line in lines[first - 1 : last]]
            found.append(Excerpt(file, first, redact_text("\n".join(text)).split("\n")))
    return found


def _ranges(numbers: list[int], count: int) -> list[tuple[int, int]]:
    """Return the ranges of lines to show: `[42, 45]` becomes one range, 36 to 51. None exceeds the file."""
    joined: list[tuple[int, int]] = []
    for number in numbers:
        first, last = max(1, number - _AROUND), min(count, number + _AROUND)
        if number > count:
            continue
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined
