"""Finds which steps count in the end, and which were lost and repeated.

A step is lost if its run later continues from an earlier step: in a later round, or in the same process after a spike.
If a job ends before it is done, the steps after the last complete checkpoint are lost too: nothing has saved them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace

from stoker.goodput import accounts
from stoker.goodput.events import CheckpointCounted, RunResumed
from stoker.goodput.history import JobHistory
from stoker.goodput.pieces import TimePiece


class KeptSteps:
    """The step that every run continued from, and when."""

    def __init__(self, job: JobHistory) -> None:
        # By run and, within a round, by worker: times, and the lowest step resumed from at each time or later.
        self._later = _least_from(
            ((event.run, worker.round), event.step)
            for worker in job.workers
            for event in worker.events
            if isinstance(event, RunResumed)
        )
        self._same: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
        for worker in job.workers:
            for event in worker.events:
                if isinstance(event, RunResumed):
                    key = (event.run, worker.round, worker.rank)
                    self._same.setdefault(key, []).append((event.at, event.step))
        self._at_end = _find_counted(job) if job.ended is not None and not job.done else None

    def divide(self, piece: TimePiece) -> Iterator[TimePiece]:
        """Yield the part of a piece whose steps count, and the part whose steps were lost."""
        if piece.account != accounts.PRODUCTIVE:
            yield piece
            return
        limit = self._find_limit(piece)
        steps = piece.last - piece.first
        if piece.untold or (limit is not None and limit <= piece.first and (steps or limit < piece.last)):
            yield replace(piece, account=accounts.RECOMPUTED)
        elif limit is None or limit >= piece.last:
            yield piece
        else:
            middle = piece.begin + piece.length * (limit - piece.first) // steps
            yield replace(piece, end=middle, last=limit)
            yield replace(piece, begin=middle, first=limit, account=accounts.RECOMPUTED)

    def _find_limit(self, piece: TimePiece) -> int | None:
        """Return the last step of the piece that counts; None if all of them do."""
        same = self._same.get((piece.run, piece.round, piece.rank), [])
        limits = [step for at, step in same if at >= piece.end]
        rounds, least = self._later.get(piece.run, ([], []))
        after = bisect_left(rounds, piece.round + 1)
        if after < len(rounds):
            limits.append(least[after])
        if self._at_end is not None:
            limits.append(self._at_end.get(piece.run, 0))
        return min(limits, default=None)


def _least_from(
    resumes: Iterable[tuple[tuple[str, int], int]],
) -> dict[str, tuple[list[int], list[int]]]:
    """Return, for each run, its rounds and the lowest step that each of them or a later one resumed from."""
    found: dict[str, dict[int, int]] = {}
    for (run, number), step in resumes:
        steps = found.setdefault(run, {})
        steps[number] = min(step, steps.get(number, step))
    tables = {}
    for run, steps in found.items():
        rounds = sorted(steps)
        least = [steps[number] for number in rounds]
        for index in range(len(least) - 2, -1, -1):
            least[index] = min(least[index], least[index + 1])
        tables[run] = (rounds, least)
    return tables


def _find_counted(job: JobHistory) -> dict[str, int]:
    """Return the step of each run's newest complete checkpoint."""
    counted = [
        event for worker in job.workers for event in worker.events if isinstance(event, CheckpointCounted)
    ]
    return {event.run: event.step for event in sorted(counted, key=lambda event: event.at)}
