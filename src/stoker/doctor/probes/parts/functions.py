"""Compiled functions: how they were traced, and how they were called."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from stoker.doctor.probes.measurements import Books, Measurements, ProbePart
from stoker.doctor.probes.parts.device import DevicePart
from stoker.doctor.probes.parts.tallies import MAX_ROWS
from stoker.doctor.probes.parts.windows import WindowsPart

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.graph_calls import CalledFunction
    from stoker.doctor.probes.retrace import TracedFunction
    from stoker.records import FunctionRow, TraceRow


@dataclass(frozen=True)
class TracesPart(ProbePart):
    """The functions that TensorFlow traced."""

    functions: list[TracedFunction] = field(default_factory=list)
    # Definitions in the user's own files.
    users_functions: frozenset[SiteKey] = frozenset()
    # Definitions in Stoker's trainer.
    trainers_functions: frozenset[SiteKey] = frozenset()

    def sites(self) -> Iterable[SiteKey]:
        return [f.definition for f in self.functions if f.definition]

    def tables(self, m: Measurements) -> dict[str, list[TraceRow]]:
        from stoker.doctor.attach.sites import site_columns
        from stoker.records import ChangeRow, TraceRow

        rows = [
            TraceRow(
                **{"function": f.name, **site_columns(f.definition)},
                traces=f.traces,
                retraces=f.retraces,
                objects=f.objects,
                seconds=f.ns / 1e9,
                changes=[ChangeRow(**asdict(c)) for c in f.changes[:5]],
            )
            for f in sorted(self.functions, key=lambda f: -f.ns)[:MAX_ROWS]
        ]
        return {"traces": rows}


@dataclass(frozen=True)
class CallsPart(ProbePart):
    """The compiled functions that the program called."""

    functions: list[CalledFunction] = field(default_factory=list)

    def sites(self) -> Iterable[SiteKey]:
        return [f.definition for f in self.functions if f.definition]

    def tables(self, m: Measurements) -> dict[str, list[FunctionRow]]:
        from stoker.doctor.attach.sites import site_columns
        from stoker.records import FunctionRow

        busy_share = m[WindowsPart].graph_busy_share
        rows = [
            FunctionRow(
                **{"function": f.name, **site_columns(f.definition)},
                calls=f.calls,
                seconds=f.ns / 1e9,
                graph_s=f.graph_ns / 1e9,
                first_calls_s=f.first_call_excess_ns(busy_share) / 1e9,
                jit_compile=f.jit_compile,
            )
            for f in sorted(self.functions, key=lambda f: -f.ns)[:MAX_ROWS]
        ]
        return {"functions": rows}


def first_call_ns(m: Measurements) -> int:
    """Return the time of graph optimisation and XLA compilation, which happen in the first execution of a function."""
    busy_share = m[WindowsPart].graph_busy_share
    return sum(function.first_call_excess_ns(busy_share) for function in m[CallsPart].functions)


def communication_ns(m: Measurements) -> float:
    """Return the time of exchanges with other workers, inside compiled functions and outside."""
    totals = m[Books].totals
    outside = float(totals.get("communication", 0))
    if m[DevicePart].kind != "CPU":
        return outside
    graph = float(totals["graph"])
    return outside + (graph - min(graph, float(first_call_ns(m)))) * m[WindowsPart].graph_communication_share
