"""A worker's time from the start of a round to the next, cut into pieces that each belong to one account."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stoker.goodput import accounts
from stoker.goodput.events import PhaseBegun, RunResumed, StepsDone
from stoker.goodput.history import RoundHistory, WorkerHistory

_NS = 1e9


@dataclass(frozen=True)
class TimePiece:
    """A part of a worker's time, in nanoseconds of the job's clock; with steps, if the part is from a training run."""

    begin: int
    end: int
    account: str
    rank: int
    round: int
    line: str = ""
    run: str = ""
    first: int = 0
    last: int = 0
    # The call also compiled; the share of its steps is not known yet.
    cold: bool = False
    # The process was killed before it could report how many steps it did.
    untold: bool = False

    @property
    def length(self) -> int:
        return self.end - self.begin


def cut(
    worker: WorkerHistory | None, rank: int, round_of: RoundHistory, until: int, *, running: bool
) -> list[TimePiece]:
    """Cut the time of a worker, from the start of its round to `until`, without gaps.

    Args:
        worker: the worker's events; None if its process never began, or left none.
        rank: the worker's rank.
        round_of: the round.
        until: where the next round begins, or the job ends.
        running: whether the worker may still be alive at `until`.
    """
    died = until if round_of.over is None else min(round_of.over, until)
    if worker is not None and worker.ended is not None:
        died = min(died, worker.ended)
    cutter = _Cutter(rank, round_of.number, round_of.began, max(died, round_of.began))
    if worker is not None:
        cutter.take(worker)
    cutter.finish(running=running and died == until)
    end = TimePiece(cutter.at, max(until, cutter.at), accounts.IDLE, rank, round_of.number)
    return [piece for piece in (*cutter.pieces, end) if piece.length > 0]


class _Cutter:
    """Goes through the events of a worker, and cuts nothing after `died`."""

    def __init__(self, rank: int, number: int, began: int, died: int) -> None:
        self.pieces: list[TimePiece] = []
        self.at = began
        self._rank, self._number, self._died = rank, number, died
        self._phase, self._line = accounts.STARTUP, ""
        self._run, self._step = "", 0

    def take(self, worker: WorkerHistory) -> None:
        """Take in all events."""
        for event in worker.events:
            until = min(max(event.at, self.at), self._died)
            if isinstance(event, StepsDone):
                self._add_steps(event, until)
            else:
                self._add_rest(until)
            if isinstance(event, PhaseBegun):
                self._phase, self._line = event.phase, event.line
            elif isinstance(event, RunResumed):
                self._run, self._step = event.run, event.step

    def finish(self, *, running: bool) -> None:
        """Cut the time from the last event to the end of the process."""
        if self._phase != accounts.TRAINING:
            self._add_rest(self._died)
        elif self.at < self._died:
            # The process was killed in the middle of its steps, or is still doing them.
            steps = {"run": self._run, "first": self._step, "last": self._step, "untold": not running}
            self._add(self._died, accounts.PRODUCTIVE, **steps)

    def _add_rest(self, until: int) -> None:
        account = accounts.OTHER if self._phase == accounts.TRAINING else self._phase
        self._add(until, account if account in accounts.MEANINGS else accounts.OTHER)

    def _add_steps(self, event: StepsDone, until: int) -> None:
        """Cut the seconds of an event, which end at its moment; the phase gets the rest of the time before them."""
        room = until - self.at
        spent = {
            accounts.PEERS: event.peers_s,
            accounts.DATA: event.data_s,
            accounts.PRODUCTIVE: event.steps_s,
        }
        wanted = sum(spent.values()) * _NS
        scale = _NS * min(1.0, room / wanted) if wanted > 0 else 0.0
        self._add_rest(until - min(room, round(sum(spent.values()) * scale)))
        for account, seconds in spent.items():
            if account != accounts.PRODUCTIVE:
                self._add(min(until, self.at + round(seconds * scale)), account)
        steps = {"run": event.run, "first": event.first, "last": event.last, "cold": event.cold}
        self._add(until, accounts.PRODUCTIVE, **steps)
        self._run, self._step = event.run, event.last

    def _add(self, until: int, account: str, **steps: object) -> None:
        if until > self.at:
            shared = {"rank": self._rank, "round": self._number, "line": self._line}
            self.pieces.append(TimePiece(self.at, until, account, **shared, **steps))  # type: ignore[arg-type]
            self.at = until


def split_compiling(pieces: list[TimePiece]) -> list[TimePiece]:
    """Divide each call that compiled into compiling and steps, using the duration of steps in the run's other calls.

    Without any other call, the whole call counts as compiling.
    """
    times: dict[tuple[str, int], list[float]] = {}
    for piece in pieces:
        if piece.account == accounts.PRODUCTIVE and not piece.cold and piece.last > piece.first:
            times.setdefault((piece.run, piece.rank), []).append(piece.length / (piece.last - piece.first))
    typical = {key: sorted(found)[len(found) // 2] for key, found in times.items()}
    runs = {run: found for (run, _), found in typical.items()}
    return [
        part
        for piece in pieces
        for part in (
            _split(piece, typical.get((piece.run, piece.rank), runs.get(piece.run, 0.0)))
            if piece.cold
            else (piece,)
        )
    ]


def _split(piece: TimePiece, step_ns: float) -> Iterator[TimePiece]:
    steps_ns = min(piece.length, round(step_ns * (piece.last - piece.first)))
    middle = piece.end - steps_ns
    if middle > piece.begin:
        yield TimePiece(piece.begin, middle, accounts.COMPILING, piece.rank, piece.round, piece.line)
    if piece.end > middle:
        yield TimePiece(
            middle,
            piece.end,
            accounts.PRODUCTIVE,
            piece.rank,
            piece.round,
            piece.line,
            piece.run,
            piece.first,
            piece.last,
        )
