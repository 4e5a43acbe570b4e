"""What a stall's repair changes in a program: what of a step is the stall's own, and what comes in its place.

A repair changes what is its finding's own and nothing else, except what it says it frees. What comes in place of the
cause is taken from the same run wherever the run tells; each repair says in words what it assumes.

Windows label most pieces of work with a site. What they do not label belongs, account by account, to whoever the run's
sums say took it: `doctor/pricing/claims` shares it out, and asks each repair what it may claim.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stoker.doctor.replay.pieces import TIMED, Piece, Site, mean_s

if TYPE_CHECKING:
    from stoker.doctor.replay.program import Program, TimedRepair
    from stoker.doctor.replay.simulation import Draw
    from stoker.records import Finding

# "Every N steps", as the remedies say.
RARELY = 50
RARE = f"what was done every step is done every {RARELY} steps"
WARM = "what stays is quicker, as it was where such a repair was measured"


def site_of(finding: Finding) -> Site:
    """The site of the finding."""
    return finding.file, finding.line


@dataclass(frozen=True, kw_only=True)
class Repair(ABC):
    """How a stall is repaired, what that assumes, and how far off its prices were.

    Two things cannot be seen in a run. What stays of a step is quicker once a stall is gone: it no longer begins with
    cold caches and threads asleep (`beside`). And the model itself is off (`spread`). Both are read off
    `python benchmarks/whatif.py --residuals`, for the examples and the development programs, never for those held
    out: for each pair, what `beside` would have to be for the price to be right, and how far off the price was.
    """

    # The accounts a finding's time is on, in the order in which what nobody labelled is claimed.
    accounts: tuple[str, ...]
    # What the price assumes, in words.
    assumes: str
    # What is uncertain, by the names given to `Draw.between`.
    uncertain: tuple[str, ...] = ()
    # How much quicker what stays on the host becomes, for each unit of the stall's share of a step: least and most.
    beside: tuple[float, float] = (0.0, 0.0)
    # How far off a price may be, as a part of the gain's logarithm: less, more.
    spread: tuple[float, float] = (0.4, 0.6)
    # All that happens inside its calls is its own, whatever it is.
    owns_whole_calls: bool = False
    # The eager ops that follow a tape are its own.
    owns_tapes: bool = False
    # Of its time only what is lost counts: the rest belongs to findings of their own, or stays.
    claims_loss_only: bool = False
    # The experiment (`doctor/experiments/trials.py`) that times it; none where it is only modelled.
    experiment: str = ""
    # The repair only leaves something out, and the run has timed every call of that. On a device that works beside the
    # host it also changes when things happen, which only the replay tells.
    only_leaves_out: bool = False

    def experiment_of(self, finding: Finding) -> str:
        """The experiment that times the repair of this finding; empty if there is none."""
        return self.experiment

    def accounts_of(self, finding: Finding) -> tuple[str, ...]:
        """The accounts this finding's time is on."""
        return self.accounts

    def measured_s(self, finding: Finding) -> float | None:
        """The seconds of the run that the sums give to the finding."""
        return finding.lost_s if self.claims_loss_only else finding.seconds

    def is_own(self, piece: Piece, finding: Finding) -> bool:
        """Whether a piece is labelled as the finding's."""
        return piece.account in self.accounts_of(finding) and piece.site == site_of(finding)

    def shares_by_samples(self, finding: Finding) -> bool:
        """Whether samples decide which part of a step belongs to the finding, so that it is known only roughly."""
        return self.accounts_of(finding)[0] == "eager"

    def may_claim(self, piece: Piece) -> bool:
        """Whether a piece that bears no site, on one of the accounts, may be the stall's."""
        return True

    def label(self, piece: Piece, finding: Finding) -> Piece:
        """The piece labelled as the finding's."""
        return replace(piece, site=site_of(finding))

    def own_s(self, program: Program, finding: Finding) -> float:
        """Seconds of a step that are labelled as the finding's."""
        return mean_s(program.steps, lambda piece: self.is_own(piece, finding))

    def timed(self, program: Program, finding: Finding) -> TimedRepair | None:
        """What the repair of this finding was timed to take; None if it was not."""
        return program.timed.get((finding.kind, finding.file, finding.line))

    def is_measured(self, program: Program, finding: Finding) -> bool:
        """Whether nothing of the finding's price is assumed: its repair was timed, or the run has timed what goes."""
        in_run = self.only_leaves_out and not program.asynchronous and bool(program.count)
        return in_run or self.timed(program, finding) is not None

    def replaced(self, program: Program, step: Sequence[Piece], finding: Finding) -> set[int]:
        """The positions of the pieces of a step that the repaired part replaces."""
        return {number for number, piece in enumerate(step) if self.is_own(piece, finding)}

    def apply_measured(self, program: Program, finding: Finding, seconds: float) -> Program:
        """The program with the repaired part, which was timed to take this many seconds a step."""
        there = [self.replaced(program, step, finding) for step in program.steps]
        # Where only some steps have it, those have all of it.
        share = sum(map(bool, there)) / len(there)
        part = Piece("compute", seconds / share if share else 0.0, site_of(finding), TIMED)

        def change(step: list[Piece], gone: set[int]) -> list[Piece]:
            kept = [piece for number, piece in enumerate(step) if number not in gone]
            return [*kept, part] if gone else step

        steps = [change(step, gone) for step, gone in zip(program.steps, there, strict=True)]
        return replace(program, steps=steps)

    @abstractmethod
    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """The program as it is once the finding is repaired."""

    def frees(self, program: Program, finding: Finding) -> dict[str, float]:
        """What the repair frees beside what is the finding's own, at most: seconds of a step, by name."""
        return {}


class DoneRarely(Repair):
    """It is done every N-th time only."""

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Its own pieces shorter, and without their waiting."""

        def change(piece: Piece) -> Piece:
            if not self.is_own(piece, finding):
                return piece
            return replace(piece, account="python", seconds=(piece.seconds - piece.wait) / RARELY, wait=0.0)

        return program.with_pieces(change)
