"""Computes the ledger of a job from its history.

The job's time is divided at the starts of its rounds. In each part, every worker of the round has a sequence of pieces
without gaps, and counts for its share of the job. So the accounts sum to the wall time whatever the workers noted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from stoker.goodput import accounts
from stoker.goodput.accounts import ACCOUNTS, IDLE, PRODUCTIVE, RECOMPUTED, STARTUP
from stoker.goodput.history import JobHistory, RoundHistory
from stoker.goodput.kept_steps import KeptSteps
from stoker.goodput.ledger import BadputCause, CurvePoint, JobLedger, LineLoss
from stoker.goodput.pieces import TimePiece, cut, split_compiling

_NS = 1e9
_POINTS = 60
FIRST_START = "the first start"
_REWOUND = "training went back to an earlier step"
_AFTER_THE_END = "workers that had ended before the others"


def fold(job: str, history: JobHistory) -> JobLedger:
    """Return the ledger of a job; if the job still runs, up to its last event."""
    end = history.last if history.ended is None else history.ended
    sums = _Sums(history.began, end)
    for part in _cut_parts(history, end):
        for piece in part.pieces:
            sums.add(piece, part)
    state = "running" if history.ended is None else "done" if history.done else "failed"
    return JobLedger(
        job=job,
        state=state,
        wall_s=(end - history.began) / _NS,
        workers=max((len(one.ranks) for one in history.rounds), default=0),
        restarts=max(0, len(history.rounds) - 1),
        accounts={name: sums.accounts[name] / _NS for name in ACCOUNTS},
        worker_s={name: sums.worker_ns[name] / _NS for name in ACCOUNTS},
        steps=sums.steps,
        lost_steps=sums.lost_steps,
        causes=_list_causes(sums, history),
        by_worker={
            rank: {name: spent[name] / _NS for name in ACCOUNTS}
            for rank, spent in sorted(sums.by_worker.items())
        },
        by_line=sorted(
            (LineLoss(line, account, ns / _NS) for (line, account), ns in sums.by_line.items()),
            key=lambda loss: -loss.seconds,
        ),
        curve=sums.draw_curve(),
    )


@dataclass(frozen=True)
class _Part:
    """The time from the start of a round to the next one, or the time before the first."""

    round_of: RoundHistory | None
    # Why this round was started.
    because: str
    ranks: list[int]
    pieces: list[TimePiece]
    # When each worker did its first step of the round.
    first_steps: dict[int, int]
    # When the first worker ended, if that ended the round: from then on the others' work was lost.
    lost_at: int | None = None


def _cut_parts(history: JobHistory, end: int) -> Iterator[_Part]:
    rounds = history.rounds
    if not rounds:
        yield _Part(None, FIRST_START, [0], [TimePiece(history.began, end, STARTUP, 0, 0)], {})
        return
    before = rounds[0]
    waits = [TimePiece(history.began, before.began, STARTUP, rank, before.number) for rank in before.ranks]
    yield _Part(None, FIRST_START, before.ranks, waits, {})
    kept = KeptSteps(history)
    known = {(one.round, one.rank): one for one in history.workers}
    cuts = [
        [
            piece
            for rank in this.ranks
            for piece in cut(
                known.get((this.number, rank)),
                rank,
                this,
                rounds[index + 1].began if index + 1 < len(rounds) else end,
                running=history.ended is None,
            )
        ]
        for index, this in enumerate(rounds)
    ]
    # Take the usual duration of a step from all rounds: a worker may be killed right after its first call.
    pieces = split_compiling([piece for part in cuts for piece in part])
    for index, this in enumerate(rounds):
        own = [
            part
            for piece in pieces
            if piece.round == this.number
            for part in kept.divide(piece)
            if part.length > 0
        ]
        firsts: dict[int, int] = {}
        for piece in own:
            if piece.account in (PRODUCTIVE, RECOMPUTED):
                firsts.setdefault(piece.rank, piece.begin)
        because = FIRST_START if index == 0 else rounds[index - 1].line or rounds[index - 1].kind
        ends = [one.ended for one in history.workers if one.round == this.number and one.ended is not None]
        lost_at = min(ends, default=None) if this.line else None
        yield _Part(this, because, this.ranks, own, firsts, lost_at)


@dataclass
class _Sums:
    """Nanoseconds, summed in several ways."""

    begin: int
    end: int
    accounts: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    worker_ns: Counter[str] = field(default_factory=Counter)
    causes: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    by_worker: defaultdict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    by_line: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    steps: int = 0
    lost_steps: int = 0

    def __post_init__(self) -> None:
        self._bins = [0.0] * _POINTS

    def add(self, piece: TimePiece, part: _Part) -> None:
        share = piece.length / len(part.ranks)
        self.accounts[piece.account] += share
        self.worker_ns[piece.account] += piece.length
        self.by_worker[piece.rank][piece.account] += piece.length
        # All workers do the same steps.
        steps = piece.last - piece.first if piece.rank == part.ranks[0] else 0
        if piece.account == PRODUCTIVE:
            self.steps += steps
            self._draw(piece, len(part.ranks))
            return
        if piece.account == RECOMPUTED:
            self.lost_steps += steps
        self.causes[_find_cause(piece, part)] += share
        if piece.line:
            self.by_line[piece.line, piece.account] += share

    def _draw(self, piece: TimePiece, workers: int) -> None:
        width = (self.end - self.begin) / _POINTS
        first = int((piece.begin - self.begin) / width)
        for index in range(first, min(_POINTS, int((piece.end - self.begin) / width) + 1)):
            begin = self.begin + index * width
            inside = min(piece.end, begin + width) - max(piece.begin, begin)
            self._bins[index] += max(0.0, inside) / workers

    def draw_curve(self) -> list[CurvePoint]:
        width = (self.end - self.begin) / _POINTS
        points, so_far = [], 0.0
        for index, productive in enumerate(self._bins if width else []):
            so_far += productive
            at = (index + 1) * width
            points.append(CurvePoint(at / _NS, productive / width, so_far / at))
        return points


def _find_cause(piece: TimePiece, part: _Part) -> str:
    """Return why a piece was not spent on steps that count."""
    this = part.round_of
    if this is None:
        return part.because
    if piece.account == RECOMPUTED:
        return this.line or (_REWOUND if this.kind in ("", "done") else this.kind)
    if piece.account == IDLE:
        return this.line or (_AFTER_THE_END if this.kind in ("", "done") else this.kind)
    if piece.begin < part.first_steps.get(piece.rank, piece.end):
        return part.because
    if part.lost_at is not None and piece.begin >= part.lost_at:
        return this.line
    return accounts.MEANINGS[piece.account]


def _list_causes(sums: _Sums, history: JobHistory) -> list[BadputCause]:
    times = Counter(one.line or one.kind for one in history.rounds)
    found = [BadputCause(what, ns / _NS, times.get(what, 1)) for what, ns in sums.causes.items() if ns > 0]
    return sorted(found, key=lambda cause: -cause.seconds)
