"""An unfinished finding: what a detector knows, before the source line and the texts are added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stoker.doctor.probes.measurements import Books
from stoker.doctor.probes.parts.steps import StepsPart

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.probes.recorder import Tally

# A stall happens repeatedly: anything rarer than this is not in a loop, whatever it costs.
MIN_REPEATS = 10
# Events between fewer steps than `FEW`, or in fewer than one step in `_RARE`, are one piece of work, such as setting
# weights, if there are many of them each time.
FEW, _RARE = 3, 50


@dataclass
class Draft:
    """A stall at a site. Times are in nanoseconds."""

    site: SiteKey
    count: int
    # None if the stall costs no time.
    ns: int | None
    lost_ns: int | None
    wait_ns: int | None = None
    copy_ns: int | None = None
    bytes: int | None = None
    # Memory that the program would not need without the stall.
    saved_bytes: int | None = None
    # Replaces the stall's own remedy if the run suggests a better one.
    remedy: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)


def happens_every_step(m: Measurements, count: int) -> bool:
    """Return whether something that happened `count` times belongs to the loop: in at least one step in five."""
    return count >= max(MIN_REPEATS, m[StepsPart].count // 5)


def is_in_loop(m: Measurements, tally: Tally) -> bool:
    """Return whether this happens inside the loop of steps.

    Work that ends before the first training step, or begins after the last, is done once. A program that trains
    nothing may have several loops, of which only the hottest counts the steps; then everything is in a loop.
    """
    steps, phase = m[StepsPart], m[StepsPart].phase
    if not phase.ns or not tally.last_end_ns or not steps.trains:
        return True
    rare = tally.between < FEW <= steps.ticks or tally.between * _RARE < steps.ticks
    if rare and tally.count >= MIN_REPEATS * tally.between:
        return False
    # An event in the first step may be the first of many, unless the last one ends within that step.
    return tally.last_end_ns > phase.first_ns and tally.first_end_ns <= phase.last_ns


def is_worth_reporting(m: Measurements, lost_ns: int, share: float = 0.02) -> bool:
    """Return whether the lost time alone is large enough to report."""
    return lost_ns >= m[Books].wall_ns * share


def find_commonest_site(sites: dict[SiteKey, int]) -> SiteKey | None:
    """Return the site seen most often."""
    return max(sites, key=lambda site: sites[site]) if sites else None
