"""Each step makes many small exchanges with the other workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.probes.parts.environment import EnvironmentPart
from stoker.doctor.probes.parts.functions import TracesPart, communication_ns
from stoker.doctor.probes.parts.steps import StepsPart
from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.draft import Draft, find_commonest_site

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements

# One exchange a step is enough for everything small; larger states are exchanged in packs of about 4 MiB.
_FEW = 3
_SMALL_BYTES = 1 << 20


class ManySmallCollectives(Stall):
    """Many small exchanges in one step."""

    slug = "many-small-collectives"
    code = "STK602"
    account = "communication"
    title = "Each step makes many small exchanges with the other workers"
    remedy = "Exchange once per step: all gradients and metrics in one all_reduce call, as stoker.fit does."
    why = "Every exchange has a latency, however few its bytes, and the step waits for each one."

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report step functions with several exchanges that are small on average."""
        if m[EnvironmentPart].workers < 2:
            return
        traces = m[TracesPart]
        for function in traces.functions:
            count, size = function.collectives, function.collective_bytes
            if count < _FEW or not function.updates_variables or size > count * _SMALL_BYTES:
                continue
            # The line that calls `stoker.fit` has no say in what the trainer exchanges.
            if function.definition in traces.trainers_functions:
                continue
            site = (
                function.definition
                if function.definition in traces.users_functions
                else find_commonest_site(function.sites)
            )
            if site is None:
                continue
            spent = int(communication_ns(m))
            # The repair leaves one exchange.
            lost = spent * (count - 1) // count
            detail = {"collectives": count, "function": function.name}
            yield Draft(site, m[StepsPart].count, spent, lost, bytes=size, detail=detail)


STALL = ManySmallCollectives()
