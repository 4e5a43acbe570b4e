"""Graphs that are built again, and calls too small for their price."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.attach.sites import SiteKey
from stoker.doctor.diagnosis.draft import MIN_REPEATS, Draft, most
from stoker.doctor.diagnosis.ledger import (
    device,
    graph_busy_share,
    graph_communication_share,
    graph_input_share,
)
from stoker.doctor.probes.environment import OTHER_WORK
from stoker.doctor.probes.graph_calls import CalledFunction
from stoker.doctor.probes.retrace import Change, TracedFunction
from stoker.doctor.probes.session import Measurements

# Two traces are usual (a last, smaller batch); from the third on something changes every time.
_MIN_RETRACES = 3


def find(m: Measurements) -> Iterator[Draft]:
    """`tf-function-in-loop`, `retrace-*`, `launch-bound`."""
    yield from _retraces(m)
    yield from _launch_bound(m)


def _retraces(m: Measurements) -> Iterator[Draft]:
    excess = {f.definition: f.first_call_excess_ns(graph_busy_share(m)) for f in m.called if f.definition}
    for function in m.traced:
        if function.definition not in m.users_functions:
            continue
        site = most(function.sites) or function.definition
        if site is None:
            continue
        repeated = max(1, function.traces - 1)
        first_calls = excess.get(function.definition, 0) * repeated // max(1, function.traces)
        lost = function.repeated_ns + first_calls
        if function.objects >= _MIN_RETRACES and function.retraces < _MIN_RETRACES * function.objects:
            yield _in_loop(m, function, site, lost)
        elif function.retraces >= _MIN_RETRACES:
            yield _retraced(function, site, lost)


def _in_loop(m: Measurements, function: TracedFunction, site: SiteKey, lost: int) -> Draft:
    """Many tf.function objects of one definition: shown where it is defined, which is inside the loop."""
    where = function.definition or site
    detail = {"function": function.name, "objects": function.objects, "traces": function.traces}
    return Draft(
        "tf-function-in-loop",
        where,
        function.traces,
        function.ns + lost - function.repeated_ns,
        lost,
        detail=detail,
    )


def _retraced(function: TracedFunction, site: SiteKey, lost: int) -> Draft:
    python = sum(change.python for change in function.changes)
    kind = "retrace-python-arg" if python * 2 >= len(function.changes) else "retrace-shape"
    detail = {
        "function": function.name,
        "traces": function.traces,
        "changes": [_change(change) for change in function.changes[:5]],
    }
    return Draft(kind, site, function.retraces, function.ns, lost, detail=detail)


def _change(change: Change) -> dict[str, str]:
    return {"argument": change.argument, "from": change.old, "to": change.new}


def _launch_bound(m: Measurements) -> Iterator[Draft]:
    """Loops whose calls cost more than what they call. Keras' loop pays for itself and for the call."""
    in_keras: dict[SiteKey, CalledFunction] = {}
    for function in m.called:
        site = most(function.sites)
        if site is None or function.calls < 10 * MIN_REPEATS:
            continue
        if site in m.fits:
            in_keras[site] = function
            continue
        graph = function.graph_ns - function.first_call_excess_ns(graph_busy_share(m))
        around = function.dispatch_ns - function.first_dispatch_ns
        yield from _dispatch_bound(m, site, function.calls, around, graph)
    for site, function in in_keras.items():
        fit = m.fits[site]
        graph = fit["graph"] - function.first_call_excess_ns(graph_busy_share(m))
        around = fit["dispatch"] - function.first_dispatch_ns
        yield from _dispatch_bound(m, site, function.calls, around, graph)


def _dispatch_bound(m: Measurements, site: SiteKey, calls: int, around: int, graph: int) -> Iterator[Draft]:
    """`around` is the Python of the calls, `graph` the time inside: starting a graph is part of its price."""
    started = 1.0
    if m.is_async or m.device_kind != "CPU":
        # The call only enqueues. What it enqueues keeps the device busy, or it does not.
        busy = device(m).busy
        if busy is None or busy >= 0.5:
            return
        computing = busy * (around + graph)
    else:
        computing = graph * graph_busy_share(m)
        # On a busy machine kernels wait for processors, which is not what starting them costs.
        started -= float(m.environment.get(OTHER_WORK, 0.0))
    elsewhere = graph_input_share(m) + graph_communication_share(m)
    launching = int(around + (graph * (1 - elsewhere) - computing) * started)
    if launching > computing:
        detail = {
            "calls": calls,
            "call_us": round(launching / calls / 1e3),
            "compute_us": round(computing / calls / 1e3),
        }
        yield Draft("launch-bound", site, calls, launching, launching, detail=detail)
