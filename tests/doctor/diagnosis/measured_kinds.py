"""The stalls a run can find: those whose module has a detector."""

from __future__ import annotations

from stoker.doctor.stall import Stall, stalls

# What spoils the training without taking time has no price, nor has what only a job of several workers shows: the
# replay is of one worker.
UNPRICED = {slug for slug, stall in stalls().items() if stall.spoils_results or stall.code.startswith("STK6")}
MEASURED = {slug for slug, stall in stalls().items() if type(stall).find is not Stall.find}
