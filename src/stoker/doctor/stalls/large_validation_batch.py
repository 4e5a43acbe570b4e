"""Validation needs more memory than training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.probes.parts.memory import MemoryPart
from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.draft import Draft

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements

_LEAST_BYTES, _LEAST_SHARE = 8 << 20, 0.05


class LargeValidationBatch(Stall):
    """Validation that raises the device's memory peak."""

    slug = "large-validation-batch"
    code = "STK704"
    account = "compute"
    title = "Validation needs more memory than training"
    remedy = "Validate in smaller batches: fit(validation_batch_size=N), or batch the validation data as training's."
    why = (
        "Validation keeps no activations for gradients, so its batches may be as large as training's, but not many "
        "times larger. If they are, they decide which model fits on the device."
    )
    holds_memory = True

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report devices whose memory peaks during an evaluation."""
        for peak in m[MemoryPart].validation:
            if peak.bytes >= max(_LEAST_BYTES, _LEAST_SHARE * peak.training_bytes):
                yield Draft(
                    peak.site,
                    0,
                    None,
                    None,
                    saved_bytes=peak.bytes,
                    detail={"training_bytes": peak.training_bytes, "device": peak.device},
                )


STALL = LargeValidationBatch()
