"""The data that the program holds in memory without need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.doctor.probes.measurements import ProbePart

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.memory.held import (
        DatasetOnDevice,
        GraphConstant,
        GrowingContainer,
        HeldSlots,
        RepeatedArray,
    )


@dataclass(frozen=True)
class HeldPart(ProbePart):
    """Growing containers of tensors, arrays held twice, constants of graphs, slots of frozen variables."""

    growing: list[GrowingContainer] = field(default_factory=list)
    repeated: list[RepeatedArray] = field(default_factory=list)
    constants: list[GraphConstant] = field(default_factory=list)
    frozen: list[HeldSlots] = field(default_factory=list)
    on_device: list[DatasetOnDevice] = field(default_factory=list)

    def sites(self) -> Iterable[SiteKey]:
        held = (self.growing, self.repeated, self.constants, self.frozen, self.on_device)
        return [one.site for some in held for one in some]
