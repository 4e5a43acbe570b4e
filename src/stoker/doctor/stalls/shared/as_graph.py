"""The repair of eager work: one compiled call in place of many ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.doctor.replay.pieces import Piece
from stoker.doctor.replay.repair import Repair, site_of

if TYPE_CHECKING:
    from stoker.doctor.replay.program import Program
    from stoker.doctor.replay.simulation import Draw
    from stoker.records import Finding

# The name of what is uncertain about it.
SIDE_BY_SIDE = "kernels side by side"
EAGER_ACCOUNTS = ("eager", "dispatch")


@dataclass(frozen=True, kw_only=True)
class AsGraph(Repair):
    """A graph of the same kernels, less what starting each one takes."""

    accounts: tuple[str, ...] = EAGER_ACCOUNTS
    uncertain: tuple[str, ...] = (SIDE_BY_SIDE,)
    experiment: str = "as-graph"

    def replaced(self, step: Sequence[Piece], finding: Finding) -> set[int]:
        """The ops, and the Python between them."""
        return super().replaced(step, finding) | self._python_between(step, finding)

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """A call, and on a synchronous device its kernels, where the ops were."""
        # A graph starts each kernel, too, at about half the price.
        kernels = max(0.0, program.eager_kernels - program.eager_floor / 2)
        # What has all processors already cannot run side by side with anything.
        narrow = 1 - program.eager_wide
        beside = draw.between(1 - narrow * (1 - 1 / program.cores), 1.0, SIDE_BY_SIDE)

        def change(step: list[Piece]) -> list[Piece]:
            own = [p for p in step if self.is_own(p, finding)]
            eager = sum(p.seconds for p in own if p.account == "eager")
            if not eager:
                return step
            between = self._python_between(step, finding)
            kept = [p for n, p in enumerate(step) if not self.is_own(p, finding) and n not in between]
            site = site_of(finding)
            # However few the ops, a call in their place costs no more than they did.
            seconds = min(program.call_s + program.launches_s, sum(p.seconds for p in own))
            call = Piece("launch", seconds, site, "graph", device=sum(p.device for p in own))
            if program.asynchronous:
                return [*kept, call]
            return [*kept, call, Piece("compute", eager * kernels * beside, site, "graph")]

        return program.with_steps(change)

    def frees(self, program: Program, finding: Finding) -> dict[str, float]:
        """The Python between the ops: it runs once, while the graph is traced."""
        steps = program.steps
        seconds = sum(step[n].seconds for step in steps for n in self._python_between(step, finding))
        return {"the Python between the ops": seconds / len(steps)}

    def _python_between(self, step: Sequence[Piece], finding: Finding) -> set[int]:
        """Which pieces are Python between two eager ops of the finding."""
        own = [number for number, piece in enumerate(step) if self.is_own(piece, finding)]
        inside = range(own[0], own[-1]) if own else range(0)
        return {
            n
            for n in inside
            if step[n].account == "python" and not step[n].name and n - 1 in own and n + 1 in own
        }
