"""Windows of TensorFlow's profiler: the proportions that no Python hook can see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.doctor.probes.measurements import Measurements, ProbePart
from stoker.doctor.probes.parts.tallies import MAX_ROWS

if TYPE_CHECKING:
    from stoker.doctor.probes.profiler_trace import WindowSummary
    from stoker.doctor.probes.tensorflow_events import WindowEvents
    from stoker.records import StageRow, WindowSums


def _empty_summary() -> WindowSummary:
    from stoker.doctor.probes.profiler_trace import WindowSummary

    return WindowSummary()


@dataclass(frozen=True)
class WindowsPart(ProbePart):
    """The sums over all windows, and a few windows event by event."""

    summary: WindowSummary = field(default_factory=_empty_summary)
    events: list[WindowEvents] = field(default_factory=list)

    @property
    def graph_input_share(self) -> float:
        """The share of the time inside compiled functions in which they only waited for input."""
        return self._graph_share(self.summary.graph_input_ns)

    @property
    def graph_communication_share(self) -> float:
        """The share of the time inside compiled functions in which they only waited for other workers."""
        return self._graph_share(self.summary.graph_communication_ns)

    @property
    def graph_busy_share(self) -> float:
        """The share of the time inside compiled functions in which kernels ran; 1 without a window."""
        return self._graph_share(self.summary.graph_busy_ns, without_window=1.0)

    @property
    def eager_kernel_share(self) -> float:
        """The share of the time inside eager ops in which a kernel ran."""
        return self.summary.eager_kernel_ns / self.summary.eager_ns if self.summary.eager_ns else 0.0

    def _graph_share(self, ns: int, without_window: float = 0.0) -> float:
        return ns / self.summary.graph_ns if self.summary.graph_ns else without_window

    def tables(self, m: Measurements) -> dict[str, list[StageRow] | list[WindowSums]]:
        from stoker.records import StageRow

        slowest = sorted(self.summary.stages.items(), key=lambda item: -item[1].self_ns)[:MAX_ROWS]
        return {
            "stages": [StageRow(path=path, calls=s.calls, self_s=s.self_ns / 1e9) for path, s in slowest],
            "windows": [self.summary.sums()],
        }
