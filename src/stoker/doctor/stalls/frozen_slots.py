"""The optimizer keeps slots for frozen layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.probes.parts.held import HeldPart
from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.draft import Draft

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements

_LEAST_BYTES = 4 << 20


class FrozenSlots(Stall):
    """Layers frozen after an optimizer was built for their variables."""

    slug = "frozen-slots"
    code = "STK705"
    account = "compute"
    title = "The optimizer keeps slots for frozen layers"
    remedy = "Freeze the layers first, then compile with a new optimizer, or build it on model.trainable_variables."
    why = (
        "Adam keeps two numbers for each weight it was built on, frozen later or not. And a model that is not compiled "
        "again keeps training the layers that look frozen."
    )
    holds_memory = True

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report optimizers that keep slots for variables that no longer train."""
        for one in m[HeldPart].frozen:
            if one.bytes >= _LEAST_BYTES:
                yield Draft(
                    one.site, one.variables, None, None, saved_bytes=one.bytes, detail={"layer": one.layer}
                )


STALL = FrozenSlots()
