"""The ledger of a job."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any

from stoker.errors import UsageError
from stoker.goodput.accounts import PRODUCTIVE


@dataclass(frozen=True)
class BadputCause:
    """A reason for lost time: seconds of the job's wall time, how many times it happened, and the cost, if priced."""

    what: str
    seconds: float
    times: int = 1


@dataclass(frozen=True)
class LineLoss:
    """The time that a line of the user's program lost, by account."""

    line: str
    account: str
    seconds: float


@dataclass(frozen=True)
class CurvePoint:
    """Goodput at a moment: since the previous point, and since the job began."""

    at_s: float
    goodput: float
    so_far: float


@dataclass(frozen=True)
class JobLedger:
    """The ledger of a job: where its wall time went, over all its restarts.

    Attributes:
        job: the job's id.
        state: "done", "failed" (or stopped), or "running" (or nobody saw its end).
        wall_s: seconds from the job's start to its end, or to its last event.
        workers: the largest number that ran at once.
        restarts: how many times all workers were started again.
        accounts: seconds, which sum to the wall time. If several workers run, each counts for its share.
        worker_s: the same, summed over all workers: the time to pay for.
        steps: the number of steps that count.
        lost_steps: the number of steps that were done and lost.
        causes: why time was lost, the costliest first.
        by_worker: the accounts of each worker, in the rounds it took part in.
        by_line: the time that each line of the user's program lost.
        curve: goodput over time.
    """

    job: str
    state: str
    wall_s: float
    workers: int
    restarts: int
    accounts: dict[str, float]
    worker_s: dict[str, float]
    steps: int
    lost_steps: int
    causes: list[BadputCause] = field(default_factory=list)
    by_worker: dict[int, dict[str, float]] = field(default_factory=dict)
    by_line: list[LineLoss] = field(default_factory=list)
    curve: list[CurvePoint] = field(default_factory=list)

    @property
    def goodput(self) -> float | None:
        """The share of the wall time spent on steps that count; None if no step was reported."""
        if not self.steps and not self.lost_steps:
            return None
        return self.accounts[PRODUCTIVE] / self.wall_s if self.wall_s else 0.0

    def to_json(self, price: Price | None = None) -> dict[str, Any]:
        """Return the ledger as other programs read it; `price` adds the cost of each account."""
        costs = {}
        if price is not None:
            found = {name: round(price.of(seconds), 6) for name, seconds in self.worker_s.items()}
            costs = {"price": price.text, "costs": found}
        return {"goodput": self.goodput, **asdict(self), **costs}


@dataclass(frozen=True)
class Price:
    """The cost of one worker for an hour; `text` is the price as the user wrote it."""

    text: str
    per_hour: float
    currency: str = ""

    @classmethod
    def parse(cls, text: str) -> Price:
        """Read `3.20/h` or `$3.20/h`.

        Raises:
            UsageError: the text is neither.
        """
        match = re.fullmatch(r"([^\d\s.,/-]{0,3})(\d+(?:\.\d+)?)(?:/h)?", text.strip())
        if match is None:
            raise UsageError(f"--price {text!r}: give what one worker costs in an hour, such as 3.20/h")
        return cls(text, float(match[2]), match[1])

    def of(self, worker_s: float) -> float:
        """Return the cost of this many worker seconds."""
        return worker_s * self.per_hour / 3600

    def show(self, worker_s: float) -> str:
        """Return the same cost as people write it."""
        return f"{self.currency}{self.of(worker_s):,.2f}"
