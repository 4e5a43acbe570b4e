"""Folding the recorder's raw totals into the accounts of the record.

Two raw totals are mixtures that only the profiler's windows can take apart: time inside compiled functions
(kernels, waiting for the next element, exchanging with other workers, starting and ending the graph) and time inside
eager ops (kernels, or dispatching them). On a GPU the host only launches work in either: there all of it is dispatch,
and the device has a book of its own.
"""

from __future__ import annotations

from stoker.doctor.probes.session import Measurements
from stoker.records import ACCOUNTS, Device


def accounts(m: Measurements) -> dict[str, float]:
    """Seconds by account; they sum to the wall time."""
    ns = {name: float(m.totals.get(name, 0)) for name in ACCOUNTS}
    graph, eager = float(m.totals["graph"]), float(m.totals["eager"])
    first_calls = min(graph, float(first_call_ns(m)))
    ns["trace"] += first_calls
    graph -= first_calls
    if m.device_kind == "CPU":
        waiting, running = graph * graph_input_share(m), graph * graph_busy_share(m)
        exchanging = graph * graph_communication_share(m)
        ns["input"] += waiting
        ns["communication"] += exchanging
        ns["compute"] += running + eager * eager_kernel_share(m)
        ns["dispatch"] += graph - waiting - running - exchanging + eager * (1 - eager_kernel_share(m))
    else:
        ns["dispatch"] += graph + eager
    return {name: value / 1e9 for name, value in ns.items()}


def first_call_ns(m: Measurements) -> int:
    """Graph optimisation and XLA compilation, which happen inside the first execution of a function."""
    return sum(function.first_call_excess_ns(graph_busy_share(m)) for function in m.called)


def graph_input_share(m: Measurements) -> float:
    """Of the time inside compiled functions, the part in which they only waited for input."""
    return m.windows.graph_input_ns / m.windows.graph_ns if m.windows.graph_ns else 0.0


def graph_communication_share(m: Measurements) -> float:
    """Of the time inside compiled functions, the part in which they only waited for an exchange with other workers."""
    return m.windows.graph_communication_ns / m.windows.graph_ns if m.windows.graph_ns else 0.0


def graph_busy_share(m: Measurements) -> float:
    """Of the time inside compiled functions, the part in which kernels ran; all of it, if no window tells."""
    return m.windows.graph_busy_ns / m.windows.graph_ns if m.windows.graph_ns else 1.0


def eager_kernel_share(m: Measurements) -> float:
    """Of the time inside eager ops, the part in which a kernel ran."""
    return m.windows.eager_kernel_ns / m.windows.eager_ns if m.windows.eager_ns else 0.0


def device(m: Measurements) -> Device:
    """The device's book: busy while the program stepped, from the windows; from the driver where there are none."""
    windows = m.windows
    busy = windows.busy_ns / windows.window_ns if windows.window_ns else m.gpu_load
    return Device(
        name=m.device_name,
        kind=m.device_kind,
        count=m.device_count,
        busy=None if busy is None else min(1.0, round(busy, 4)),
        utilisation=m.gpu_load,
        memory_peak=m.gpu_memory_peak or None,
    )
