"""A finding in the making: what a detector knows, before the source line and the text are put in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stoker.doctor.probes.measurements import Books
from stoker.doctor.probes.parts.steps import StepsPart

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.probes.recorder import Tally

# A stall is repeated; what happens a few times is not in a loop, whatever it costs.
MIN_REPEATS = 10
# Many of something between so few steps, or so rarely, and none elsewhere, are one piece of work: weights are set.
FEW, _RARE = 3, 50


@dataclass
class Draft:
    """A stall at a site, in nanoseconds."""

    site: SiteKey
    count: int
    # None for what has no price in time.
    ns: int | None
    lost_ns: int | None
    wait_ns: int | None = None
    copy_ns: int | None = None
    bytes: int | None = None
    # Memory that would not be needed without it.
    saved_bytes: int | None = None
    # Replaces the stall's own remedy where the run knows better.
    remedy: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)


def happens_every_step(m: Measurements, count: int) -> bool:
    """Whether something that happened `count` times belongs to the loop: to one step in five at least."""
    return count >= max(MIN_REPEATS, m[StepsPart].count // 5)


def is_in_loop(m: Measurements, tally: Tally) -> bool:
    """Whether the program steps where this happens.

    What is over before the first training step, or begins after the last, is done once. A program that trains
    nothing may have several loops, of which only the hottest is counted by.
    """
    steps, phase = m[StepsPart], m[StepsPart].phase
    if not phase.ns or not tally.last_end_ns or not steps.trains:
        return True
    rare = tally.between < FEW <= steps.ticks or tally.between * _RARE < steps.ticks
    if rare and tally.count >= MIN_REPEATS * tally.between:
        return False
    # The first step may hold the first of many; of one that is over when it ends there is no telling.
    return tally.last_end_ns > phase.first_ns and tally.first_end_ns <= phase.last_ns


def is_worth_reporting(m: Measurements, lost_ns: int, share: float = 0.02) -> bool:
    """Whether so much was lost that it matters by itself."""
    return lost_ns >= m[Books].wall_ns * share


def find_commonest_site(sites: dict[SiteKey, int]) -> SiteKey | None:
    """The site seen most often."""
    return max(sites, key=lambda site: sites[site]) if sites else None
