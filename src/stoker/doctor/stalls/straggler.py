"""One worker is slower than the others, and all wait for it."""

from __future__ import annotations

from stoker.doctor.stall import Stall


class Straggler(Stall):
    """A worker all others wait for."""

    slug = "straggler"
    code = "STK601"
    account = "communication"
    title = "One worker is slower than the others, and all wait for it"
    remedy = "Look at what it does longer than the others: its input, its machine, what only the chief does."
    why = "An exchange ends when the last worker has come: what one does longer, all others wait for."


STALL = Straggler()
