"""Before and after for each kind, from its cases."""

from __future__ import annotations

import difflib
from typing import Any

from stoker.doctor.stall import stalls


def examples(kinds: set[str]) -> dict[str, dict[str, Any]]:
    """Return for each kind `why` and the lines `before` and `after`, each line with whether it differs."""
    return {
        kind: _example(stall.why, stall.bad[0].code, stall.good[0].code)
        for kind, stall in stalls().items()
        if kind in kinds
    }


def _example(why: str, before: str, after: str) -> dict[str, Any]:
    old, new = before.strip("\n").split("\n"), after.strip("\n").split("\n")
    gone, come = set(range(len(old))), set(range(len(new)))
    for block in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_matching_blocks():
        gone -= set(range(block.a, block.a + block.size))
        come -= set(range(block.b, block.b + block.size))
    return {
        "why": why,
        "before": [[text, index in gone] for index, text in enumerate(old)],
        "after": [[text, index in come] for index, text in enumerate(new)],
    }
