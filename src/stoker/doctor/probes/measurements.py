"""What the probes know at one moment: the one value that ledger, detectors and record read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.eager_ops import Dispatched
    from stoker.doctor.probes.graph_calls import CalledFunction
    from stoker.doctor.probes.keras_loop import CallbackTime, PredictCalls
    from stoker.doctor.probes.loop_turns import UserFrame
    from stoker.doctor.probes.memory import Point
    from stoker.doctor.probes.pipelines import Pipeline
    from stoker.doctor.probes.profiler_trace import Summary
    from stoker.doctor.probes.recorder import Tally
    from stoker.doctor.probes.retrace import TracedFunction
    from stoker.doctor.probes.spans import Window
    from stoker.doctor.probes.tensorflow_events import WindowEvents
    from stoker.records import TuningRow

# The name under which `environment` holds the share of the processors that other programs had.
OTHER_WORK = "busy with other work"


@dataclass(frozen=True)
class Measurements:
    """What the probes know at one moment, for the ledger and the diagnosis to read."""

    wall_ns: int
    totals: dict[str, int]
    tallies: dict[str, dict[SiteKey, Tally]]
    traced: list[TracedFunction]
    called: list[CalledFunction]
    pipelines: list[Pipeline]
    callbacks: list[CallbackTime]
    predicts: dict[SiteKey, PredictCalls]
    fits: dict[SiteKey, dict[str, int]]
    eager_ns: int
    eager_op_ns: int
    steps: int
    steps_per_s: float | None
    examples_per_s: float | None
    windows: Summary
    device_kind: str
    device_name: str
    device_count: int
    gpu_load: float | None
    gpu_memory_peak: int
    device_rows: list[dict[str, Any]]
    versions: dict[str, str]
    notes: list[str]
    columns: dict[SiteKey, int]
    # The functions whose Python code is the user's own.
    users_functions: frozenset[SiteKey]
    is_async: bool
    # The stepping phase: from the end of the first step to the end of the last.
    start_ns: int = 0
    # What steps are counted by, and the ends of the first and of the last.
    step_sources: frozenset[object] = frozenset()
    trains: bool = False
    # Ends of steps, of all sources but reads: a tick is a step, or the several that one call runs.
    ticks: int = 0
    stepping_from_ns: int = 0
    stepping_to_ns: int = 0
    stepping_ns: int = 0
    stepping_drain_ns: int = 0
    stepping_steps: int = 0
    stepping_totals: dict[str, int] = field(default_factory=dict)
    step_times_ns: list[int] = field(default_factory=list)
    windows_of_spans: list[Window] = field(default_factory=list)
    eager_ops: int = 0
    # Ops and nanoseconds of eager dispatch, by the user's frames they were sampled in.
    eager_stacks: dict[tuple[UserFrame, ...], Dispatched] = field(default_factory=dict)
    # Threads a kernel may use, 0 for as many as there are processors.
    intra_op_threads: int = 0
    # Of the variables the reported steps train: what replicas would exchange.
    gradient_bytes: int = 0
    # Seconds, bytes of the process, bytes on the device.
    memory: list[Point] = field(default_factory=list)
    environment: dict[str, str | int | float] = field(default_factory=dict)
    tensorflow_events: list[WindowEvents] = field(default_factory=list)
    # What `stoker.tune` did, and the line that asked for it.
    tunings: list[tuple[SiteKey | None, TuningRow]] = field(default_factory=list)
    # Processes that train together, by TF_CONFIG.
    workers: int = 1

    @property
    def other_work(self) -> float:
        """The share of the machine's processors that other programs had."""
        return float(self.environment.get(OTHER_WORK, 0.0))

    @property
    def first_call_ns(self) -> int:
        """Graph optimisation and XLA compilation, which happen inside the first execution of a function."""
        return sum(function.first_call_excess_ns(self.graph_busy_share) for function in self.called)

    @property
    def graph_input_share(self) -> float:
        """Of the time inside compiled functions, the part in which they only waited for input."""
        return self.windows.graph_input_ns / self.windows.graph_ns if self.windows.graph_ns else 0.0

    @property
    def graph_communication_share(self) -> float:
        """Of the time inside compiled functions, the part spent only waiting for an exchange with other workers."""
        return self.windows.graph_communication_ns / self.windows.graph_ns if self.windows.graph_ns else 0.0

    @property
    def graph_busy_share(self) -> float:
        """Of the time inside compiled functions, the part in which kernels ran; all of it, if no window tells."""
        return self.windows.graph_busy_ns / self.windows.graph_ns if self.windows.graph_ns else 1.0

    @property
    def eager_kernel_share(self) -> float:
        """Of the time inside eager ops, the part in which a kernel ran."""
        return self.windows.eager_kernel_ns / self.windows.eager_ns if self.windows.eager_ns else 0.0

    @property
    def communication_ns(self) -> float:
        """Exchanging with other workers, inside compiled functions and outside."""
        outside = float(self.totals.get("communication", 0))
        if self.device_kind != "CPU":
            return outside
        graph = float(self.totals["graph"])
        return outside + (graph - min(graph, float(self.first_call_ns))) * self.graph_communication_share

    @property
    def device_busy(self) -> float | None:
        """The share of the stepping phase in which the device was busy: from the windows, else from the driver."""
        windows = self.windows
        busy = windows.busy_ns / windows.window_ns if windows.window_ns else self.gpu_load
        return None if busy is None else min(1.0, round(busy, 4))
