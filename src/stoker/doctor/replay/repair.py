"""The change that a stall's repair makes to a program: which pieces of a step go, and what replaces them.

A repair changes only the pieces of its finding, and what it declares to free. The replacement is taken from the same
run wherever possible; each repair says in words what it assumes.

Profiler windows label most pieces of work with a site. The other pieces are assigned, account by account, to the
findings that took the time according to the run's sums: `doctor/pricing/claims` divides them, and asks each repair
which it may claim.
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

# The N of "every N steps" in remedies.
RARELY = 50
RARE = f"what was done every step is done every {RARELY} steps"
WARM = "what stays is quicker, as it was where such a repair was measured"


def site_of(finding: Finding) -> Site:
    """Return the site of a finding."""
    return finding.file, finding.line


@dataclass(frozen=True, kw_only=True)
class Repair(ABC):
    """The way a stall is repaired, what this assumes, and how far off its prices were.

    Two things cannot be seen in a run. The rest of a step is quicker once a stall is gone, since it no longer begins
    with cold caches and sleeping threads (`beside`). And the model itself has an error (`spread`). Both come from
    `python benchmarks/whatif.py --residuals` on the examples and the development programs, never on those held out:
    for each pair it shows which `beside` would make the price right, and how far off the price was.
    """

    # The accounts of a finding's time, in the order in which unlabelled pieces are claimed.
    accounts: tuple[str, ...]
    # What the price assumes, in words.
    assumes: str
    # The names, for `Draw.between`, of what is uncertain.
    uncertain: tuple[str, ...] = ()
    # How much quicker the host's other work becomes, relative to the stall's share of a step: least and most.
    beside: tuple[float, float] = (0.0, 0.0)
    # How far off a price may be, as a part of the gain's logarithm: downwards and upwards.
    spread: tuple[float, float] = (0.4, 0.6)
    # Whether everything inside the finding's calls belongs to it.
    owns_whole_calls: bool = False
    # Whether the eager ops that follow a tape belong to the finding.
    owns_tapes: bool = False
    # The accounts in which the number of pieces matters, or the length of each: alike ones must not be joined.
    looks_at_single_pieces_of: frozenset[str] = frozenset()
    # Whether only the lost part of the finding's time counts; the rest belongs to other findings, or stays.
    claims_loss_only: bool = False
    # The experiment (`doctor/experiments/trials.py`) that times the repair; empty if it is only modelled.
    experiment: str = ""
    # Whether the repair only leaves out calls, all of which the run has timed. On an asynchronous device it also
    # changes when things happen, which only the replay can tell.
    only_leaves_out: bool = False

    def experiment_of(self, finding: Finding) -> str:
        """Return the experiment that times the repair of this finding, or an empty string."""
        return self.experiment

    def accounts_of(self, finding: Finding) -> tuple[str, ...]:
        """Return the accounts of this finding's time."""
        return self.accounts

    def measured_s(self, finding: Finding) -> float | None:
        """Return the seconds that the run's sums assign to the finding."""
        return finding.lost_s if self.claims_loss_only else finding.seconds

    def is_own(self, piece: Piece, finding: Finding) -> bool:
        """Return whether a piece is labelled as the finding's."""
        return piece.account in self.accounts_of(finding) and piece.site == site_of(finding)

    def shares_by_samples(self, finding: Finding) -> bool:
        """Return whether only samples, which are rough, show which part of a step belongs to the finding."""
        return self.accounts_of(finding)[0] == "eager"

    def may_claim(self, piece: Piece) -> bool:
        """Return whether a piece without a site, on one of the accounts, may belong to the stall."""
        return True

    def label(self, piece: Piece, finding: Finding) -> Piece:
        """Return the piece, labelled as the finding's."""
        return replace(piece, site=site_of(finding))

    def own_s(self, program: Program, finding: Finding) -> float:
        """Return the seconds of a step that are labelled as the finding's."""
        return mean_s(program.steps, lambda piece: self.is_own(piece, finding))

    def timed(self, program: Program, finding: Finding) -> TimedRepair | None:
        """Return the measured time of this finding's repair, or None if it was not timed."""
        return program.timed.get(finding.key)

    def is_measured(self, program: Program, finding: Finding) -> bool:
        """Return whether the price assumes nothing: the repair was timed, or the run timed what it leaves out."""
        in_run = self.only_leaves_out and not program.asynchronous and bool(program.count)
        return in_run or self.timed(program, finding) is not None

    def replaced(self, program: Program, step: Sequence[Piece], finding: Finding) -> set[int]:
        """Return the positions of the pieces of a step that the repaired part replaces."""
        return {number for number, piece in enumerate(step) if self.is_own(piece, finding)}

    def apply_measured(self, program: Program, finding: Finding, seconds: float) -> Program:
        """Return the program with the repaired part, which was timed to take this many seconds a step."""
        there = [self.replaced(program, step, finding) for step in program.steps]
        # If only some steps have the part, they take all of its time.
        share = sum(map(bool, there)) / len(there)
        part = Piece("compute", seconds / share if share else 0.0, site_of(finding), TIMED)

        def change(step: list[Piece], gone: set[int]) -> list[Piece]:
            kept = [piece for number, piece in enumerate(step) if number not in gone]
            return [*kept, part] if gone else step

        steps = [change(step, gone) for step, gone in zip(program.steps, there, strict=True)]
        return replace(program, steps=steps)

    @abstractmethod
    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Return the program as it would be with the finding repaired."""

    def frees(self, program: Program, finding: Finding) -> dict[str, float]:
        """Return what the repair frees at most beyond the finding's pieces: seconds of a step, by name."""
        return {}


class DoneRarely(Repair):
    """The repair: the work is done only every N steps."""

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Return the program with the finding's pieces shortened, and without their waits."""

        def change(piece: Piece) -> Piece:
            if not self.is_own(piece, finding):
                return piece
            return replace(piece, account="python", seconds=(piece.seconds - piece.wait) / RARELY, wait=0.0)

        return program.with_pieces(change)
