"""A price that nobody need ask a model for: the findings were repaired, and the program was run.

`stoker fix --verify` has run it before and after, `stoker tune` has measured its input. What they found is in the run's
record (`Tables.verified`), and is the price of those findings wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.doctor.replay.program import Program
from stoker.records import Finding, VerifiedRow


def find_verified_row(
    program: Program, findings: Sequence[Finding], counting: Sequence[Finding]
) -> VerifiedRow | None:
    """What was found of these findings together: of them all, or of those that count; the latest has the last word."""
    asked, least = _keys(findings), _keys(counting)
    rows = [row for row in program.verified if row.keys == asked or (least and least <= row.keys <= asked)]
    return rows[-1] if rows else None


def find_verified_gain(program: Program, findings: Sequence[Finding]) -> float:
    """What some of these findings gained: all of them gain no less."""
    asked = _keys(findings)
    return max((row.speedup for row in program.verified if row.keys <= asked), default=1.0)


def _keys(findings: Sequence[Finding]) -> frozenset[tuple[str, str, int]]:
    return frozenset((finding.kind, finding.file, finding.line) for finding in findings)
