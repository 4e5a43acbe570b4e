"""The device: what the program computes on, its load and its memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stoker.doctor.probes.measurements import Measurements, ProbePart
from stoker.doctor.probes.parts.windows import WindowsPart

if TYPE_CHECKING:
    from stoker.doctor.probes.memory import Point


@dataclass(frozen=True)
class DevicePart(ProbePart):
    """The device and its driver's figures."""

    kind: str = "CPU"
    name: str = "CPU"
    count: int = 1
    # The share of time with any work, as the driver reports it; None if there is none.
    load: float | None = None
    memory_peak: int = 0
    memory: list[Point] = field(default_factory=list)
    # The software GPU's counters, one row per device.
    rows: list[dict[str, Any]] = field(default_factory=list)
    # Whether eager ops return before they have run.
    is_async: bool = False
    # The threads that one kernel may use; 0 means one per processor.
    intra_op_threads: int = 0

    @property
    def runs_beside_host(self) -> bool:
        """Whether a call only queues work, as for a GPU or an asynchronous executor."""
        return self.is_async or self.kind != "CPU"

    def tables(self, m: Measurements) -> dict[str, list[dict[str, Any]]]:
        return {"devices": self.rows}


def device_busy(m: Measurements) -> float | None:
    """Return the share of the stepping phase in which the device was busy, from the windows or else from the driver."""
    summary = m[WindowsPart].summary
    busy = summary.busy_ns / summary.window_ns if summary.window_ns else m[DevicePart].load
    return None if busy is None else min(1.0, round(busy, 4))
