"""Keras' loops: callbacks, and the calls of `fit` and `predict`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.doctor.probes.measurements import Measurements, ProbePart
from stoker.doctor.probes.parts.tallies import MAX_ROWS

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.keras_loop import CallbackTime, EpochLogs, FitCalls, PredictCalls
    from stoker.records import CallbackRow, EpochRow


@dataclass(frozen=True)
class KerasPart(ProbePart):
    """The time of Keras' loops, and what they spent it on."""

    callbacks: list[CallbackTime] = field(default_factory=list)
    predicts: dict[SiteKey, PredictCalls] = field(default_factory=dict)
    fits: dict[SiteKey, FitCalls] = field(default_factory=dict)
    # The size of the variables that an eager optimizer updates.
    variable_bytes: int = 0
    epochs: list[EpochLogs] = field(default_factory=list)

    def sites(self) -> Iterable[SiteKey]:
        return [*self.predicts, *self.fits, *(c.site for c in self.callbacks if c.site)]

    def tables(self, m: Measurements) -> dict[str, list[CallbackRow] | list[EpochRow]]:
        from stoker.doctor.attach.sites import site_columns
        from stoker.records import CallbackRow, EpochRow

        rows = [
            CallbackRow(
                callback=c.class_name, hook=c.hook, **site_columns(c.site), calls=c.calls, seconds=c.ns / 1e9
            )
            for c in sorted(self.callbacks, key=lambda c: -c.ns)[:MAX_ROWS]
            if c.calls
        ]
        epochs = [
            EpochRow(
                epoch=one.epoch,
                step=one.step,
                values={name: value if math.isfinite(value) else None for name, value in one.values.items()},
            )
            for one in self.epochs
        ]
        return {"callbacks": rows, "epochs": epochs}
