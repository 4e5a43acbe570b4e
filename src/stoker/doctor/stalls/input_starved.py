"""The step waits for the input pipeline."""

from __future__ import annotations

from stoker.doctor.stall import Stall


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


STALL = InputStarved()
