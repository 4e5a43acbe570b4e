"""How far off prices were, kind by kind: what `beside` and `spread` of the repairs are read off.

python benchmarks/whatif.py --programs development --records DIRECTORY --residuals
python benchmarks/whatif.py --records DIRECTORY --residuals
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from stoker.doctor.pricing.claims import repair_of

# A gain so small says nothing: the same program twice differs by as much.
_NOISE = 1.1


@dataclass(frozen=True)
class Residual:
    """One pair: what was promised for a stall of this share of a step, and what its repair gained."""

    kind: str
    program: str
    share: float
    predicted: float
    measured: float

    @property
    def off(self) -> float:
        """How much more was gained, as a part of the predicted gain's logarithm: what `spread` has to hold."""
        return math.log(self.measured / self.predicted) / math.log(self.predicted)

    @property
    def beside(self) -> float:
        """What `beside` would have to be for the price to be right."""
        middle = statistics.fmean(repair_of(self.kind).beside)
        return (1 - self.predicted / self.measured * (1 - middle * self.share)) / self.share


def table(residuals: Iterable[Residual]) -> str:
    """Markdown: the pairs of each kind that gain something, and their range."""
    by_kind: defaultdict[str, list[Residual]] = defaultdict(list)
    for one in residuals:
        if one.share > 0 and min(one.predicted, one.measured) > _NOISE:
            by_kind[one.kind].append(one)
    lines = [
        "| kind | program | share | predicted | measured | off | beside |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, rows in sorted(by_kind.items()):
        for one in sorted(rows, key=lambda one: one.off):
            lines.append(
                f"| {kind} | {one.program} | {one.share:.2f} | {one.predicted:.2f}x | {one.measured:.2f}x | "
                f"{one.off:+.2f} | {one.beside:+.2f} |"
            )
    return "\n".join(lines)
