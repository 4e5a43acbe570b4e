"""Folding the recorder's raw totals into the accounts of the record.

Two raw totals are mixtures, which only the profiler's windows can take apart: time inside compiled functions (kernels,
waiting for the next element, exchanging with other workers, starting and ending the graph) and time inside eager ops
(kernels, or dispatching them). With a GPU, the host only launches work in both, so both are all dispatch, and the
device has its own book.
"""

from __future__ import annotations

from stoker.doctor.probes.measurements import Books, Measurements
from stoker.doctor.probes.parts.device import DevicePart, device_busy
from stoker.doctor.probes.parts.functions import first_call_ns
from stoker.doctor.probes.parts.windows import WindowsPart
from stoker.records import ACCOUNTS, Device


def accounts(m: Measurements) -> dict[str, float]:
    """Return the seconds of each account; they sum to the wall time."""
    totals, windows = m[Books].totals, m[WindowsPart]
    ns = {name: float(totals.get(name, 0)) for name in ACCOUNTS}
    graph, eager = float(totals["graph"]), float(totals["eager"])
    first_calls = min(graph, float(first_call_ns(m)))
    ns["trace"] += first_calls
    graph -= first_calls
    if m[DevicePart].kind == "CPU":
        waiting, running = graph * windows.graph_input_share, graph * windows.graph_busy_share
        exchanging = graph * windows.graph_communication_share
        ns["input"] += waiting
        ns["communication"] += exchanging
        ns["compute"] += running + eager * windows.eager_kernel_share
        ns["dispatch"] += graph - waiting - running - exchanging + eager * (1 - windows.eager_kernel_share)
    else:
        ns["dispatch"] += graph + eager
    return {name: value / 1e9 for name, value in ns.items()}


def device_book(m: Measurements) -> Device:
    """Return the device's book. How busy the device was comes from the windows, or else from the driver."""
    device = m[DevicePart]
    return Device(
        name=device.name,
        kind=device.kind,
        count=device.count,
        busy=device_busy(m),
        utilisation=device.load,
        memory_peak=device.memory_peak or None,
    )
