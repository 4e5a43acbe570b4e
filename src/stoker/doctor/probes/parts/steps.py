"""The steps: how many, how fast, and the phase between the first and the last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.doctor.probes.measurements import Books, Measurements, ProbePart
from stoker.doctor.probes.parts.device import DevicePart
from stoker.doctor.probes.parts.eager import EagerPart
from stoker.doctor.probes.parts.functions import TracesPart
from stoker.doctor.probes.parts.keras import KerasPart
from stoker.processors import ProcessorUse, usable_cores

if TYPE_CHECKING:
    from stoker.doctor.probes.spans import Window
    from stoker.records import SteppingRow


@dataclass(frozen=True)
class Phase:
    """The stepping phase: from the end of the first step to the end of the last."""

    # The class of the steps (`probes.steps.TRAINING` and others); -1 if there are none.
    rank: int = -1
    # What the steps are counted by: loops, Keras' batches, functions.
    sources: frozenset[object] = frozenset()
    first_ns: int = 0
    last_ns: int = 0
    ns: int = 0
    # The part after the host's last step, in which the device finished its work.
    drain_ns: int = 0
    steps: int = 0
    # Nanoseconds by raw account.
    totals: dict[str, int] = field(default_factory=dict)
    # How much of the processors the process got.
    use: ProcessorUse = field(default_factory=ProcessorUse)
    # The times of single steps, in nanoseconds.
    times: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class StepsPart(ProbePart):
    """The program's steps, and a few windows of them span by span."""

    count: int = 0
    per_s: float | None = None
    examples_per_s: float | None = None
    # How many steps have ended, from any source but reads. A tick is one step, or the several that one call runs.
    ticks: int = 0
    # Whether the steps train, rather than predict or read.
    trains: bool = False
    phase: Phase = Phase()
    windows: list[Window] = field(default_factory=list)

    def tables(self, m: Measurements) -> dict[str, list[SteppingRow]]:
        from stoker.records import SteppingRow

        phase, device, eager = self.phase, m[DevicePart], m[EagerPart]
        if not phase.ns:
            return {}
        row = SteppingRow(
            seconds=phase.ns / 1e9,
            steps=phase.steps,
            drain_s=phase.drain_ns / 1e9,
            accounts={name: ns / 1e9 for name, ns in phase.totals.items()},
            cores=usable_cores(),
            kernel_threads=device.intra_op_threads or usable_cores(),
            gradient_bytes=gradient_bytes(m),
            asynchronous=device.runs_beside_host,
            eager_ops=eager.ops,
            eager_s=eager.ns / 1e9,
            eager_op_s=eager.op_ns / 1e9,
            estimated_s=m[Books].estimated_ns / 1e9,
            estimate_error=round(m[Books].estimate_error, 4),
            cpu_s=phase.use.ran / 1e9,
            waited_s=phase.use.waited / 1e9,
            all_waited_s=phase.use.all_waited / 1e9,
        )
        return {"stepping": [row]}


def gradient_bytes(m: Measurements) -> int:
    """Return the size of the variables that the steps train: what replicas would exchange at every step."""
    traced = [f.variable_bytes for f in m[TracesPart].functions if f.updates_variables]
    return max([*traced, m[KerasPart].variable_bytes])
