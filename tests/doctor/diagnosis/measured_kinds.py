"""The stalls a run can find: those whose module has a detector."""

from __future__ import annotations

from stoker.doctor.stall import Stall, stalls

# Three sorts have no price in time: what spoils the training without taking time; what holds memory, whose price is in
# bytes; and what only a job of several workers shows, since the replay is of one worker.
UNPRICED = {
    slug
    for slug, stall in stalls().items()
    if stall.spoils_results or stall.holds_memory or stall.code.startswith("STK6")
}
MEASURED = {slug for slug, stall in stalls().items() if type(stall).find is not Stall.find}
