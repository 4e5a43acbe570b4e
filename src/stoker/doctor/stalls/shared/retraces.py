"""Functions that are traced again: how often, what this costs, what had changed, and the repair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stoker.doctor.probes.parts.functions import CallsPart, TracesPart
from stoker.doctor.probes.parts.windows import WindowsPart
from stoker.doctor.replay.pieces import TIMED, Piece, is_loop_python, mean_s
from stoker.doctor.replay.repair import WARM, Repair, site_of
from stoker.doctor.stalls.shared.draft import Draft, find_commonest_site

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.probes.retrace import TracedFunction
    from stoker.doctor.replay.program import Program
    from stoker.doctor.replay.simulation import Draw
    from stoker.records import Finding

# Two traces are usual, for example for a smaller last batch. With more, something keeps changing.
_MIN_RETRACES = 3
_GRAPH = ("graph", "launch", "compute")


@dataclass(frozen=True)
class Retraced:
    """A user's function that was traced again and again."""

    function: TracedFunction
    site: SiteKey
    lost_ns: int

    @property
    def is_made_anew(self) -> bool:
        """Whether one definition makes many tf.function objects, rather than one object traced for new arguments."""
        function = self.function
        return function.objects >= _MIN_RETRACES and function.retraces < _MIN_RETRACES * function.objects

    @property
    def is_by_python_values(self) -> bool:
        """Whether at least half of the changed arguments were Python values."""
        changes = self.function.changes
        return sum(change.python for change in changes) * 2 >= len(changes)

    def draft(self) -> Draft:
        """Return a draft about the arguments that changed."""
        function = self.function
        detail: dict[str, Any] = {
            "function": function.name,
            "traces": function.traces,
            "changes": [{"argument": c.argument, "from": c.old, "to": c.new} for c in function.changes[:5]],
        }
        return Draft(self.site, function.retraces, function.ns, self.lost_ns, detail=detail)


def find_retraced_functions(m: Measurements) -> Iterator[Retraced]:
    """Yield the user's functions that were traced too often."""
    busy_share, traces = m[WindowsPart].graph_busy_share, m[TracesPart]
    calls = m[CallsPart].functions
    excess = {f.definition: f.first_call_excess_ns(busy_share) for f in calls if f.definition}
    for function in traces.functions:
        site = find_commonest_site(function.sites) or function.definition
        if function.definition not in traces.users_functions or site is None:
            continue
        repeated = max(1, function.traces - 1)
        first_calls = excess.get(function.definition, 0) * repeated // max(1, function.traces)
        found = Retraced(function, site, function.repeated_ns + first_calls)
        if found.is_made_anew or function.retraces >= _MIN_RETRACES:
            yield found


def find_retraced_by_arguments(m: Measurements) -> Iterator[Retraced]:
    """Return the retraced functions that are made once and called with changing arguments."""
    return (found for found in find_retraced_functions(m) if not found.is_made_anew)


@dataclass(frozen=True, kw_only=True)
class TraceRepair(Repair):
    """A repair that saves traces of one function."""

    def is_own(self, piece: Piece, finding: Finding) -> bool:
        """Compare the function's name, if the trace names one."""
        if piece.account == "trace" and piece.name:
            return piece.name == finding.detail.get("function")
        return super().is_own(piece, finding)


@dataclass(frozen=True, kw_only=True)
class TracedOnce(TraceRepair):
    """The repair: one trace serves all calls."""

    accounts: tuple[str, ...] = ("trace",)
    assumes: str = f"one trace serves all calls, and runs like the calls that did not trace; {WARM}"
    beside: tuple[float, float] = (0.0, 0.5)
    # The loss also includes the first execution after each trace.
    claims_loss_only: bool = True
    looks_at_single_pieces_of: frozenset[str] = frozenset(
        {"trace", "python", "dispatch", "graph", "launch", "compute"}
    )
    # Whether the loop also makes the function.
    makes_function: bool = False
    experiment: str = "same-graph"

    def may_claim(self, piece: Piece) -> bool:
        """Exclude named pieces: they are traces of other functions, such as TensorFlow's own."""
        return not piece.name

    def label(self, piece: Piece, finding: Finding) -> Piece:
        """Label a piece with the function's name."""
        return replace(super().label(piece, finding), name=finding.detail.get("function", ""))

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Remove the traces. Steps that traced then take as long as the others."""
        calls = [p.seconds for s in program.steps for p in s if p.account == "dispatch" and p.site]
        python = [p.seconds for s in program.steps for p in s if p.account == "python"]
        usual, between = _lower_quarter(calls), _lower_quarter(python)

        def change(step: list[Piece]) -> list[Piece]:
            if not any(self.is_own(p, finding) for p in step):
                return step
            return [shorten(piece) for piece in step if not self.is_own(piece, finding)]

        def shorten(piece: Piece) -> Piece:
            if self._is_call(piece, finding):
                # Looking for a missing graph and keeping the new one are part of tracing.
                return replace(piece, seconds=min(piece.seconds, usual))
            if self.makes_function and is_loop_python(piece):
                return replace(piece, seconds=min(piece.seconds, between))
            return piece

        return program.with_steps(change)

    def apply_measured(self, program: Program, finding: Finding, seconds: float) -> Program:
        """Replace all calls with calls of the one graph, which were timed to take this many seconds each.

        This includes calls that found their graph: they, too, are slower while new graphs keep being made. The
        loop's own Python stays, since making the function cannot be told from its other work.
        """

        def change(step: list[Piece]) -> list[Piece]:
            calls = sum(self._is_execution(p, finding) and p.account != "launch" for p in step)
            traces = any(self.is_own(p, finding) for p in step)
            kept = [p for p in step if not self._is_of_call(p, finding)]
            return [*kept, Piece("compute", seconds * max(calls, traces), site_of(finding), TIMED)]

        return program.with_steps(change)

    def frees(self, program: Program, finding: Finding) -> dict[str, float]:
        """Return the other work that goes away with the traces."""
        found = {
            "the Python of a call that traces": mean_s(program.steps, lambda p: self._is_call(p, finding))
        }
        if self.timed(program, finding) is not None:
            found["executing a new graph"] = mean_s(program.steps, lambda p: self._is_execution(p, finding))
        elif self.makes_function:
            found["making the function"] = mean_s(program.steps, is_loop_python)
        return found

    @staticmethod
    def _is_call(piece: Piece, finding: Finding) -> bool:
        return piece.account == "dispatch" and piece.name == finding.detail.get("function")

    def _is_of_call(self, piece: Piece, finding: Finding) -> bool:
        return (
            self.is_own(piece, finding) or self._is_call(piece, finding) or self._is_execution(piece, finding)
        )

    @staticmethod
    def _is_execution(piece: Piece, finding: Finding) -> bool:
        return piece.account in _GRAPH and piece.name == finding.detail.get("function")


def _lower_quarter(seconds: list[float]) -> float:
    """Return the lower quartile: the time of a usual call without a trace, or of a turn that makes no function."""
    return sorted(seconds)[len(seconds) // 4] if seconds else 0.0
