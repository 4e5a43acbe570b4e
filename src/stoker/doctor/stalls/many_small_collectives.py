"""A step exchanges with the other workers many times, a little each time."""

from __future__ import annotations

from stoker.doctor.stall import Stall


class ManySmallCollectives(Stall):
    """Many small exchanges in one step."""

    slug = "many-small-collectives"
    code = "STK602"
    account = "communication"
    title = "A step exchanges with the other workers many times, a little each time"
    remedy = "Exchange once a step: all gradients in one all_reduce call, metrics with them; stoker.fit does."
    why = "Every exchange has a latency beside its bytes, and the step waits for each of them."


STALL = ManySmallCollectives()
