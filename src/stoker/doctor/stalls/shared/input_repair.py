"""The repair of a starved step: another input, and the changes that the tuner could make to the present one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stoker.doctor.probes.pipelines import FIRST_ELEMENT
from stoker.doctor.replay.pieces import PYTHON, TIMED, Piece, mean_s
from stoker.doctor.replay.repair import Repair, site_of
from stoker.doctor.replay.simulation import Draw, slowdowns

if TYPE_CHECKING:
    from stoker.doctor.replay.program import Program, Source
    from stoker.records import Finding

# The share of an element's work that is left if its result is cached or one vectorised call makes it.
LEFT_OF_INPUT = 0.05
# The name of what is uncertain about that share.
LEFT = "what is left of the input"
AHEAD = 8
CROWDED = "where the input and the kernels want more processors than there are, they share them"
CROWDING = ("crowding", "lock")
_MAPS = ("Map", "ParallelMap", "MapAndBatch")
_ROW_BY_ROW = ("Shuffle", "ShuffleAndRepeat", "Batch", "ParallelBatch", "TensorSlice")
_FILES = ("TFRecord", "TextLine", "FixedLengthRecord", "Interleave", "ParallelInterleave")
_GRAPH = ("graph", "launch", "compute")
# A stage that runs more often than this for each element works row by row.
_ROWS = 1.5


@dataclass(frozen=True)
class ExpectedChange:
    """A change by the tuner, and the share of the slow stage's work that it leaves, at best and at worst."""

    name: str
    best: float
    worst: float
    assumes: str


PREFETCH = ExpectedChange("prefetch", 1.0, 1.0, "the next element is made while the step runs")


@dataclass(frozen=True, kw_only=True)
class InputRepair(Repair):
    """The repair of an input: elements are made ahead, in parallel, by fewer calls, or without Python."""

    accounts: tuple[str, ...] = ("input",)
    uncertain: tuple[str, ...] = CROWDING
    spread: tuple[float, float] = (0.5, 0.6)
    experiment: str = "calls-alone"

    def is_measured(self, program: Program, finding: Finding) -> bool:
        """Return False: the time of the repaired input is assumed, and only the rest of the step is timed."""
        return False

    def with_batches_there(self, program: Program, finding: Finding) -> Program:
        """Return the program at its best: no wait for batches, and compiled calls as fast as when timed alone."""
        timed = self.timed(program, finding)
        if timed is not None and timed.rounds:
            calls = Piece("compute", timed.rounds[0], site_of(finding), TIMED)
            program = program.with_steps(lambda step: [*filter(_stays_beside_calls, step), calls])
        return with_source(program, 0.0, ahead=AHEAD, python=False)

    def is_own(self, piece: Piece, finding: Finding) -> bool:
        """Claim all waiting for elements, whatever the line: a pipeline is not read where it is made."""
        return piece.account in self.accounts and piece.site is not None

    def frees(self, program: Program, finding: Finding) -> dict[str, float]:
        """Return what the rest of a step gains once the input no longer runs alongside it."""
        measured = program.measured
        if measured is None:
            return {}
        kernels, lock = slowdowns(program, measured, measured.duty, Draw({"crowding": 1.0, "lock": 1.0}))
        computing = mean_s(program.steps, lambda p: p.account == "compute")
        freed = computing * (1 - 1 / kernels)
        timed = self.timed(program, finding)
        if timed is not None and timed.rounds:
            freed = max(freed, mean_s(program.steps, lambda p: p.account in _GRAPH) - timed.rounds[0])
        python = mean_s(program.steps, lambda p: p.account in PYTHON)
        return {
            "processors the input kept from kernels": freed,
            "Python's lock, which the input held": python * (1 - 1 / lock),
        }

    def tuner_change(self, program: Program, source: Source, finding: Finding) -> ExpectedChange | None:
        """Return the change that the tuner would try first, or None."""
        slow, cores = finding.detail.get("slow_stage") or "", 1 / program.cores
        if finding.detail.get("cached"):
            # The tuner judges a pipeline by its later passes, which take nothing from this stage.
            return None
        by_row = source.slow_calls > _ROWS
        if slow in _MAPS and by_row:
            return ExpectedChange(
                "map moved behind batch",
                1 / source.slow_calls,
                max(cores, 1 / source.slow_calls),
                "its function does the same to a batch; at best, only the call itself costs time",
            )
        if slow == "Map":
            return ExpectedChange(
                "parallel calls", cores, cores, "its function depends on its arguments alone"
            )
        if slow in _ROW_BY_ROW and by_row:
            return ExpectedChange(
                "batches gathered by row number", 1 / source.slow_calls, 1.0, "the rows are in memory"
            )
        if slow in (*_MAPS, *_FILES):
            return ExpectedChange(
                "cache", LEFT_OF_INPUT, 1.0, "it is the same in every epoch, and fits into memory"
            )
        return None if source.ahead else PREFETCH


def _stays_beside_calls(piece: Piece) -> bool:
    """Return whether a piece is neither part of a compiled call nor time that the replay could not explain."""
    return piece.name == TIMED or piece.account not in (*_GRAPH, "unexplained")


def list_uncertain(*more: str) -> tuple[str, ...]:
    """Return what is uncertain about every repair of an input, and `more` that is about one."""
    return (*CROWDING, *more)


def with_source(program: Program, seconds: float, **changes: Any) -> Program:
    """Return the program with an input whose elements, including a new iterator's first, take this long to make."""
    source = program.source
    if source is None:
        return program
    share = min(1.0, seconds / source.seconds) if source.seconds else 1.0

    def change(piece: Piece) -> Piece:
        return replace(piece, seconds=piece.seconds * share) if piece.name == FIRST_ELEMENT else piece

    return replace(program.with_pieces(change), source=replace(source, seconds=seconds, **changes))


def shrink_slow_stage(program: Program, left: float, **changes: Any) -> Program:
    """Return the program with this share of its slow stage's work left, and elements made ahead."""
    source = program.source
    if source is None:
        return program
    seconds = source.seconds * (1 - source.slow_share + source.slow_share * left)
    return with_source(program, seconds, ahead=AHEAD, **changes)
