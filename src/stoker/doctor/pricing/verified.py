"""Prices that need no model: the findings were repaired, and the result was measured.

`stoker fix --verify` ran the program before and after; `stoker tune` measured its input. Their results are in the run's
record (`Tables.verified`), and are the price of those findings wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.doctor.replay.program import Program
from stoker.records import Finding, VerifiedRow


def find_verified_row(
    program: Program, findings: Sequence[Finding], counting: Sequence[Finding]
) -> VerifiedRow | None:
    """Return the latest result for these findings together: for all of them, or at least those that count."""
    asked, least = ({finding.key for finding in some} for some in (findings, counting))
    rows = [row for row in program.verified if row.keys == asked or (least and least <= row.keys <= asked)]
    return rows[-1] if rows else None


def find_verified_gain(program: Program, findings: Sequence[Finding]) -> float:
    """Return the largest verified gain of some of these findings. All of them gain no less."""
    asked = {finding.key for finding in findings}
    return max((row.speedup for row in program.verified if row.keys <= asked), default=1.0)
