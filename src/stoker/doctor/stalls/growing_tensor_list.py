"""A list keeps the tensors of every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.probes.parts.held import HeldPart
from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.draft import Draft

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements

# A list that keeps a long run's losses grows by only a few hundred bytes a step.
_LEAST_BYTES, _LEAST_A_STEP = 8 << 20, 8 << 10


class GrowingTensorList(Stall):
    """A list, dict or deque of tensors that grows with the steps."""

    slug = "growing-tensor-list"
    code = "STK701"
    account = "compute"
    title = "A list keeps the tensors of every step"
    remedy = "Keep a running sum, or only the few numbers you need: the list holds each tensor's memory."
    why = (
        "A tensor's memory is free only when nothing refers to it. A list that lives longer than the loop keeps the "
        "tensors of every step, so memory grows until the run ends or fails."
    )
    holds_memory = True

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report containers that grew between two looks at the program's data."""
        for grown in m[HeldPart].growing:
            if grown.bytes >= _LEAST_BYTES and grown.bytes_per_step >= _LEAST_A_STEP:
                yield Draft(
                    grown.site,
                    grown.length,
                    None,
                    None,
                    saved_bytes=grown.bytes,
                    detail={
                        "name": grown.name,
                        "bytes_per_step": grown.bytes_per_step,
                        "device": grown.device,
                    },
                )


STALL = GrowingTensorList()
