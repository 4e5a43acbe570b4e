"""Steps are so small that calling them costs more than running them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.draft import MIN_REPEATS, Draft, most
from stoker.doctor.stalls.shared.eager_work import eager_loops

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.graph_calls import CalledFunction
    from stoker.doctor.probes.measurements import Measurements


class LaunchBound(Stall):
    """Calls, or eager ops, that cost more than what they compute."""

    slug = "launch-bound"
    code = "STK207"
    account = "dispatch"
    title = "Steps are so small that calling them costs more than running them"
    remedy = "Run many steps per call: compile(steps_per_execution=N), or loop inside the tf.function."
    is_part_of_call = True
    why = "Each call costs the same on the host however little it computes: many small ones cost more than they do."

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Loops of eager ops, and loops of calls that are too small."""
        yield from eager_loops(m)
        yield from _small_calls(m)


def _small_calls(m: Measurements) -> Iterator[Draft]:
    """Loops whose calls cost more than what they call. Keras' loop pays for itself and for the call."""
    in_keras: dict[SiteKey, CalledFunction] = {}
    for function in m.called:
        site = most(function.sites)
        if site is None or function.calls < 10 * MIN_REPEATS:
            continue
        if site in m.fits:
            in_keras[site] = function
            continue
        graph = function.graph_ns - function.first_call_excess_ns(m.graph_busy_share)
        around = function.dispatch_ns - function.first_dispatch_ns
        yield from _dispatch_bound(m, site, function.calls, around, graph)
    for site, function in in_keras.items():
        fit = m.fits[site]
        graph = fit["graph"] - function.first_call_excess_ns(m.graph_busy_share)
        around = fit["dispatch"] - function.first_dispatch_ns
        yield from _dispatch_bound(m, site, function.calls, around, graph)


def _dispatch_bound(m: Measurements, site: SiteKey, calls: int, around: int, graph: int) -> Iterator[Draft]:
    """`around` is the Python of the calls, `graph` the time inside: starting a graph is part of its price."""
    started = 1.0
    if m.is_async or m.device_kind != "CPU":
        # The call only enqueues. What it enqueues keeps the device busy, or it does not.
        busy = m.device_busy
        if busy is None or busy >= 0.5:
            return
        computing = busy * (around + graph)
    else:
        computing = graph * m.graph_busy_share
        # On a busy machine kernels wait for processors, which is not what starting them costs.
        started -= m.other_work
    elsewhere = m.graph_input_share + m.graph_communication_share
    launching = int(around + (graph * (1 - elsewhere) - computing) * started)
    if launching > computing:
        detail = {
            "calls": calls,
            "call_us": round(launching / calls / 1e3),
            "compute_us": round(computing / calls / 1e3),
        }
        yield Draft(site, calls, launching, launching, detail=detail)


STALL = LaunchBound()
