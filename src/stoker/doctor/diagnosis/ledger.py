"""Folding the recorder's raw totals into the accounts of the record.

Two raw totals are mixtures that only the profiler's windows can take apart: time inside compiled functions
(kernels, waiting for the next element, exchanging with other workers, starting and ending the graph) and time inside
eager ops (kernels, or dispatching them). On a GPU the host only launches work in either: there all of it is dispatch,
and the device has a book of its own.
"""

from __future__ import annotations

from stoker.doctor.probes.measurements import Measurements
from stoker.records import ACCOUNTS, Device


def accounts(m: Measurements) -> dict[str, float]:
    """Seconds by account; they sum to the wall time."""
    ns = {name: float(m.totals.get(name, 0)) for name in ACCOUNTS}
    graph, eager = float(m.totals["graph"]), float(m.totals["eager"])
    first_calls = min(graph, float(m.first_call_ns))
    ns["trace"] += first_calls
    graph -= first_calls
    if m.device_kind == "CPU":
        waiting, running = graph * m.graph_input_share, graph * m.graph_busy_share
        exchanging = graph * m.graph_communication_share
        ns["input"] += waiting
        ns["communication"] += exchanging
        ns["compute"] += running + eager * m.eager_kernel_share
        ns["dispatch"] += graph - waiting - running - exchanging + eager * (1 - m.eager_kernel_share)
    else:
        ns["dispatch"] += graph + eager
    return {name: value / 1e9 for name, value in ns.items()}


def device(m: Measurements) -> Device:
    """The device's book: busy while the program stepped, from the windows; from the driver where there are none."""
    return Device(
        name=m.device_name,
        kind=m.device_kind,
        count=m.device_count,
        busy=m.device_busy,
        utilisation=m.gpu_load,
        memory_peak=m.gpu_memory_peak or None,
    )
