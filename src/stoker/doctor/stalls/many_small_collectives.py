"""A step exchanges with the other workers many times, a little each time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.draft import Draft, most

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements

# One exchange a step is enough for all that is small; larger states go in packs of about 4 MiB.
_FEW = 3
_SMALL_BYTES = 1 << 20


class ManySmallCollectives(Stall):
    """Many small exchanges in one step."""

    slug = "many-small-collectives"
    code = "STK602"
    account = "communication"
    title = "A step exchanges with the other workers many times, a little each time"
    remedy = "Exchange once a step: all gradients in one all_reduce call, metrics with them; stoker.fit does."
    why = "Every exchange has a latency beside its bytes, and the step waits for each of them."

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Step functions with several exchanges, all of them small."""
        if m.workers < 2:
            return
        for function in m.traced:
            count, size = function.collectives, function.collective_bytes
            if count < _FEW or not function.updates_variables or size > count * _SMALL_BYTES:
                continue
            site = function.definition if function.definition in m.users_functions else most(function.sites)
            if site is None:
                continue
            spent = int(m.communication_ns)
            # One of them would be left.
            lost = spent * (count - 1) // count
            detail = {"collectives": count, "function": function.name}
            yield Draft(site, m.steps, spent, lost, bytes=size, detail=detail)


STALL = ManySmallCollectives()
