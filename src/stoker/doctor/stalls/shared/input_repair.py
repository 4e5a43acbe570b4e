"""The repair of a starved step: another input, and what the tuner could make of the one there is."""

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

# What is left of making an element whose result is cached or that is made by one vectorised call.
LEFT_OF_INPUT = 0.05
# The name of what is uncertain about it.
LEFT = "what is left of the input"
AHEAD = 8
CROWDED = "where the input and the kernels want more processors than there are, they share them"
CROWDING = ("crowding", "lock")
_MAPS = ("Map", "ParallelMap", "MapAndBatch")
_ROW_BY_ROW = ("Shuffle", "ShuffleAndRepeat", "Batch", "ParallelBatch", "TensorSlice")
_FILES = ("TFRecord", "TextLine", "FixedLengthRecord", "Interleave", "ParallelInterleave")
_GRAPH = ("graph", "launch", "compute")
# A stage that is called more often than this for an element works row by row.
_ROWS = 1.5


@dataclass(frozen=True)
class ExpectedChange:
    """A change of the tuner, and what it leaves of the slow stage's work: at best, at worst."""

    name: str
    best: float
    worst: float
    assumes: str


PREFETCH = ExpectedChange("prefetch", 1.0, 1.0, "the next element is made while the step runs")


@dataclass(frozen=True, kw_only=True)
class InputRepair(Repair):
    """Elements made ahead, in parallel, by fewer calls, or without Python."""

    accounts: tuple[str, ...] = ("input",)
    uncertain: tuple[str, ...] = CROWDING
    spread: tuple[float, float] = (0.5, 0.6)
    experiment: str = "calls-alone"

    def is_measured(self, program: Program, finding: Finding) -> bool:
        """Never: what the repaired input takes is assumed, only the rest of the step is timed."""
        return False

    def with_batches_there(self, program: Program, finding: Finding) -> Program:
        """The program at its best: each batch is there, and its compiled calls take what they were timed to, alone."""
        timed = self.timed(program, finding)
        if timed is not None and timed.rounds:
            calls = Piece("compute", timed.rounds[0], site_of(finding), TIMED)
            program = program.with_steps(lambda step: [*filter(_stays_beside_calls, step), calls])
        return with_source(program, 0.0, ahead=AHEAD, python=False)

    def is_own(self, piece: Piece, finding: Finding) -> bool:
        """All waiting for elements: a pipeline is read elsewhere than it is made."""
        return piece.account in self.accounts and piece.site is not None

    def frees(self, program: Program, finding: Finding) -> dict[str, float]:
        """What the rest of a step gains from an input that is no longer at work beside it."""
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
        """What the tuner would try first; None if nothing."""
        slow, cores = finding.detail.get("slow_stage") or "", 1 / program.cores
        by_row = source.slow_calls > _ROWS
        if slow in _MAPS and by_row:
            return ExpectedChange(
                "map moved behind batch",
                1 / source.slow_calls,
                max(cores, 1 / source.slow_calls),
                "its function does the same to a batch; at best all it takes is being called",
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
    """Whether a piece is no part of a compiled call, nor time that the replay left out of one."""
    return piece.name == TIMED or piece.account not in (*_GRAPH, "unexplained")


def list_uncertain(*more: str) -> tuple[str, ...]:
    """What is uncertain about every repair of an input, and about this one besides."""
    return (*CROWDING, *more)


def with_source(program: Program, seconds: float, **changes: Any) -> Program:
    """The program with another input, whose elements take this long to make, including a new iterator's first."""
    source = program.source
    if source is None:
        return program
    share = min(1.0, seconds / source.seconds) if source.seconds else 1.0

    def change(piece: Piece) -> Piece:
        return replace(piece, seconds=piece.seconds * share) if piece.name == FIRST_ELEMENT else piece

    return replace(program.with_pieces(change), source=replace(source, seconds=seconds, **changes))


def shrink_slow_stage(program: Program, left: float, **changes: Any) -> Program:
    """The program with this part of its slow stage's work left, and elements made ahead."""
    source = program.source
    if source is None:
        return program
    seconds = source.seconds * (1 - source.slow_share + source.slow_share * left)
    return with_source(program, seconds, ahead=AHEAD, **changes)
