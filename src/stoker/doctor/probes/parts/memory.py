"""The memory book: who owned the devices' memory at the peak."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.doctor.probes.measurements import ProbePart

if TYPE_CHECKING:
    from stoker.doctor.memory.held import ValidationPeak
    from stoker.records import DeviceMemory, FailedAllocation


@dataclass(frozen=True)
class MemoryPart(ProbePart):
    """For each device, the book of the window with its highest peak."""

    books: list[DeviceMemory] = field(default_factory=list)
    # The allocation that failed, if the run ended because memory ran out.
    failed: FailedAllocation | None = None
    # Where validation needs more memory than training.
    validation: list[ValidationPeak] = field(default_factory=list)
