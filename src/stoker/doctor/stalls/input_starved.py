"""The step waits for the input pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.starved_input import Cause, starved

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.stalls.shared.draft import Draft


class InputStarved(Stall):
    """A pipeline that cannot keep up, for no reason that has a name of its own."""

    slug = "input-starved"
    code = "STK308"
    account = "input"
    title = "The step waits for the input pipeline"
    remedy = (
        "Make the slow stage parallel, vectorise it, or cache its result; stoker.tune(ds) tries that, and "
        "says what it gains."
    )
    why = "The step cannot start before its data is there, and the device idles as long as it is not."

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Pipelines that are too slow for another reason: the slow stage is named."""
        return starved(m, Cause.SLOW_STAGE)


STALL = InputStarved()
