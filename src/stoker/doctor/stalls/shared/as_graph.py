"""The repair of eager work: one compiled call in place of many ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.doctor.replay.pieces import Piece, mean_s
from stoker.doctor.replay.repair import Repair, site_of

if TYPE_CHECKING:
    from stoker.doctor.replay.program import Program
    from stoker.doctor.replay.simulation import Draw
    from stoker.records import Finding

# The name of what is uncertain about the repair.
SIDE_BY_SIDE = "kernels side by side"
EAGER_ACCOUNTS = ("eager", "dispatch")
# If a finding covers at least this share of a step's eager ops, it gets all of them.
_NEARLY_ALL = 0.95


@dataclass(frozen=True, kw_only=True)
class AsGraph(Repair):
    """The repair: a graph of the same kernels, without the cost of starting each one from Python."""

    accounts: tuple[str, ...] = EAGER_ACCOUNTS
    uncertain: tuple[str, ...] = (SIDE_BY_SIDE,)
    experiment: str = "function-as-graph"

    def replaced(self, program: Program, step: Sequence[Piece], finding: Finding) -> set[int]:
        """Return the positions of the finding's ops and of the Python between them.

        Marked steps, or else samples, say which ops these are. If nearly all ops of the recorded step belong to the
        finding, it also gets those that samples assigned to no finding.
        """
        own = super().replaced(program, step, finding)
        timed = self.timed(program, finding)
        if timed is not None and timed.replaces:
            return own
        if timed is not None and timed.covers >= _NEARLY_ALL:
            own |= {
                n for n, piece in enumerate(step) if piece.account in EAGER_ACCOUNTS and piece.site is None
            }
        return own | _find_python_between(step, own)

    def apply_measured(self, program: Program, finding: Finding, seconds: float) -> Program:
        """Replace the ops that the graph holds with the timed graph. The few other ops stay."""
        timed = self.timed(program, finding)
        if timed is not None and not timed.replaces and timed.covers >= _NEARLY_ALL:
            seconds += (1 - timed.covers) * mean_s(
                program.steps, lambda piece: piece.account in EAGER_ACCOUNTS
            )
        return super().apply_measured(program, finding, seconds)

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Replace the ops with a call, and on a synchronous device also with its kernels."""
        # A graph must start each kernel, too, at about half the cost.
        kernels = max(0.0, program.eager_kernels - program.eager_floor / 2)
        # A kernel that uses all processors cannot run side by side with another.
        narrow = 1 - program.eager_wide
        beside = draw.between(1 - narrow * (1 - 1 / program.cores), 1.0, SIDE_BY_SIDE)

        def change(step: list[Piece]) -> list[Piece]:
            own = [p for p in step if self.is_own(p, finding)]
            eager = sum(p.seconds for p in own if p.account == "eager")
            if not eager:
                return step
            between = _find_python_between(step, super(AsGraph, self).replaced(program, step, finding))
            kept = [p for n, p in enumerate(step) if not self.is_own(p, finding) and n not in between]
            site = site_of(finding)
            # A call never costs more than the ops that it replaces, however few these are.
            seconds = min(program.call_s + program.launches_s, sum(p.seconds for p in own))
            call = Piece("launch", seconds, site, "graph", device=sum(p.device for p in own))
            if program.asynchronous:
                return [*kept, call]
            return [*kept, call, Piece("compute", eager * kernels * beside, site, "graph")]

        return program.with_steps(change)

    def frees(self, program: Program, finding: Finding) -> dict[str, float]:
        """Return the time of the Python between the ops, which a graph runs only when traced, and of unassigned ops."""
        beside = [
            sum(step[n].seconds for n in self.replaced(program, step, finding))
            - sum(piece.seconds for piece in step if self.is_own(piece, finding))
            for step in program.steps
        ]
        return {"the Python between the ops": sum(beside) / len(beside)}


def _find_python_between(step: Sequence[Piece], own: set[int]) -> set[int]:
    """Return the positions of Python between two of the finding's eager ops, whose positions are `own`."""
    inside = range(min(own), max(own)) if own else range(0)
    return {
        n
        for n in inside
        if step[n].account == "python" and not step[n].name and n - 1 in own and n + 1 in own
    }
