"""Eager ops: how many were dispatched one by one, how long that took, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.doctor.probes.measurements import ProbePart

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.eager_ops import Dispatched
    from stoker.doctor.probes.loop_turns import UserFrame
    from stoker.doctor.probes.recorder import Tally


# Seconds of eager work between two samples of the lines that dispatch it.
SAMPLE_S = 0.025


@dataclass(frozen=True)
class EagerPart(ProbePart):
    """Eager ops of the main thread."""

    ops: int = 0
    # The total time of dispatching, and the part inside the ops.
    ns: int = 0
    op_ns: int = 0
    # What was dispatched, by the stack of the user's frames on which it was sampled.
    stacks: dict[tuple[UserFrame, ...], Dispatched] = field(default_factory=dict)
    # Gradient tapes, by the line that opens them.
    tapes: Mapping[SiteKey, Tally] = field(default_factory=dict)

    def sites(self) -> Iterable[SiteKey]:
        return [*self.tapes, *(frame.site for stack in self.stacks for frame in stack)]
