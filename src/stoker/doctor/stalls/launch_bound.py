"""Steps are so small that calling them costs more than running them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from stoker.doctor.probes.parts.device import DevicePart, device_busy
from stoker.doctor.probes.parts.environment import EnvironmentPart
from stoker.doctor.probes.parts.functions import CallsPart
from stoker.doctor.probes.parts.keras import KerasPart
from stoker.doctor.probes.parts.steps import StepsPart
from stoker.doctor.probes.parts.windows import WindowsPart
from stoker.doctor.replay.pieces import TIMED, Piece, is_loop_python, mean_s
from stoker.doctor.replay.repair import site_of
from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.as_graph import EAGER_ACCOUNTS, SIDE_BY_SIDE, AsGraph
from stoker.doctor.stalls.shared.draft import MIN_REPEATS, Draft, find_commonest_site
from stoker.doctor.stalls.shared.eager_work import eager_loops

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.graph_calls import CalledFunction
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.replay.program import Program
    from stoker.doctor.replay.simulation import Draw
    from stoker.records import Finding

# A shorter call than this is mostly launching, whatever a profile of its kernels says.
_SMALL_CALL_NS = 1_000_000
# The largest share of a call's time that its kernels are assumed to take if no profiler window was recorded.
_BUSY_SHARE = 0.6
# The name of what is uncertain about the repair.
_IN_A_LOOP = "kernels in a loop"


class _ManyStepsACall(AsGraph):
    """The repair: the loop moves into one call. Its kernels stay, perhaps as fast as in the quickest calls."""

    def accounts_of(self, finding: Finding) -> tuple[str, ...]:
        """Return the accounts of the ops for a loop of eager ops, else those of calls."""
        return EAGER_ACCOUNTS if _is_of_ops(finding) else self.accounts

    def experiment_of(self, finding: Finding) -> str:
        """Return the experiment: the ops of the loop's line in a graph, or many steps in one call."""
        return "line-as-graph" if _is_of_ops(finding) else "many-steps"

    def apply_measured(self, program: Program, finding: Finding, seconds: float) -> Program:
        """Replace the calls, their kernels and the loop's own Python with the timed loop."""
        timed = self.timed(program, finding)
        if _is_of_ops(finding) or (timed is not None and timed.replaces):
            return super().apply_measured(program, finding, seconds)

        def change(step: list[Piece]) -> list[Piece]:
            left = self._share_python_left(step, finding)
            kept = [
                replace(piece, seconds=piece.seconds * left) if is_loop_python(piece) else piece
                for piece in step
                if not self.is_own(piece, finding) and not _is_kernel_of(piece, finding)
            ]
            return [*kept, Piece("compute", seconds, site_of(finding), TIMED)]

        return program.with_steps(change)

    def _share_python_left(self, step: list[Piece], finding: Finding) -> float:
        """Return the share of the loop's own Python that stays. The calls take as much of it with them as they took."""
        launching = sum(p.seconds for p in step if self.is_own(p, finding))
        python = sum(p.seconds for p in step if is_loop_python(p))
        return max(0.0, python - launching) / python if python else 0.0

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Remove the calls, and with them as much of the loop's own Python; any more of it must be real work."""
        if _is_of_ops(finding):
            return super().apply(program, finding, draw)
        quick = draw.between(program.quick, 1.0, _IN_A_LOOP)

        def change(step: list[Piece]) -> list[Piece]:
            left = self._share_python_left(step, finding)
            return [replace(piece, seconds=piece.seconds * factor(piece, left)) for piece in step]

        def factor(piece: Piece, left: float) -> float:
            if self.is_own(piece, finding):
                return 0.0
            if is_loop_python(piece):
                return left
            return quick if _is_kernel_of(piece, finding) else 1.0

        return program.with_steps(change)

    def frees(self, program: Program, finding: Finding) -> dict[str, float]:
        """Return what else disappears when a loop moves into a compiled function."""
        timed = self.timed(program, finding)
        if _is_of_ops(finding) or (timed is not None and timed.replaces):
            return super().frees(program, finding)
        if timed is None:
            kernels = mean_s(program.steps, lambda p: p.account == "compute") * (1 - program.quick)
        else:
            kernels = mean_s(program.steps, lambda p: _is_kernel_of(p, finding))
        return {
            "the loop's own Python": min(mean_s(program.steps, is_loop_python), self.own_s(program, finding)),
            _IN_A_LOOP: kernels,
        }


def _is_kernel_of(piece: Piece, finding: Finding) -> bool:
    """Return whether a piece is kernels of the finding's calls, or of calls from an unknown line."""
    return piece.account == "compute" and piece.site in (None, site_of(finding))


def _is_of_ops(finding: Finding) -> bool:
    """Return whether a finding is about eager ops rather than calls."""
    return "ops" in finding.detail


class LaunchBound(Stall):
    """Calls or eager ops that take longer to launch than to compute."""

    slug = "launch-bound"
    code = "STK207"
    account = "dispatch"
    title = "Steps are so small that calling them costs more than running them"
    remedy = "Run many steps per call: compile(steps_per_execution=N), or loop inside the tf.function."
    is_part_of_call = True
    why = "Every call has a fixed cost on the host. If a step computes little, that cost is most of its time."
    repair = _ManyStepsACall(
        accounts=("dispatch", "launch", "graph"),
        assumes="many steps per call: kernels take between their mean time and that of the quickest calls",
        uncertain=(_IN_A_LOOP, SIDE_BY_SIDE),
    )

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report loops of calls that are too small, and loops of eager ops."""
        calls = list(_find_small_calls(m))
        yield from calls
        # Eager ops on the same lines move into the loop together with the calls.
        sites = {draft.site for draft in calls}
        yield from (draft for draft in eager_loops(m) if draft.site not in sites)


def _find_small_calls(m: Measurements) -> Iterator[Draft]:
    """Report loops whose calls take longer to launch than to compute. For Keras' loop, its own Python counts, too."""
    in_keras: dict[SiteKey, CalledFunction] = {}
    busy_share, fits = m[WindowsPart].graph_busy_share, m[KerasPart].fits
    for function in m[CallsPart].functions:
        site = find_commonest_site(function.sites)
        if site is None or function.calls < 10 * MIN_REPEATS:
            continue
        if site in fits:
            in_keras[site] = function
            continue
        graph = function.graph_ns - function.first_call_excess_ns(busy_share)
        around = function.dispatch_ns - function.first_dispatch_ns
        yield from _dispatch_bound(m, site, function.calls, around, graph)
    for site, function in in_keras.items():
        graph = fits[site].graph_ns - function.first_call_excess_ns(busy_share)
        around = fits[site].dispatch_ns - function.first_dispatch_ns
        yield from _dispatch_bound(m, site, function.calls, around, graph)


def _dispatch_bound(m: Measurements, site: SiteKey, calls: int, around: int, graph: int) -> Iterator[Draft]:
    """Report launch-bound calls. `around` is their Python, `graph` the time inside, including the graph's start."""
    started, windows = 1.0, m[WindowsPart]
    if m[DevicePart].runs_beside_host:
        # The call only enqueues work. It is launch-bound if that work does not keep the device busy.
        busy = device_busy(m)
        if busy is None or busy >= 0.5:
            return
        computing = busy * (around + graph)
    else:
        computing = max(0, graph) * (windows.graph_busy_share if windows.summary.windows else _BUSY_SHARE)
        # On a busy machine, kernels wait for processors; this is not the cost of starting them.
        started -= m[EnvironmentPart].other_work
    elsewhere = windows.graph_input_share + windows.graph_communication_share
    launching = int(around + (graph * (1 - elsewhere) - computing) * started)
    if launching > computing * _smallness(m, around + graph, calls):
        detail = {
            "calls": calls,
            "call_us": round(launching / calls / 1e3),
            "compute_us": round(computing / calls / 1e3),
        }
        yield Draft(site, calls, launching, launching, detail=detail)


def _smallness(m: Measurements, spent: int, calls: int) -> float:
    """Return the ratio of launching to computing above which launching matters. Profiles overstate tiny kernels."""
    times = sorted(m[StepsPart].phase.times)
    # The lower quartile: what a call takes while no other program has the processor.
    usual = min(times[len(times) // 4], spent // calls) if times else spent // calls
    return 0.5 if usual < _SMALL_CALL_NS else 1.0


STALL = LaunchBound()
