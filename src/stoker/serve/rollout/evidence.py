"""Decide whether two versions answer alike, as the answers come in, at a stated rate of false alarms.

The test may be checked after every request and stopped at the first conclusion, because it is a bet. A player claims
that the versions differ in more than `allowed` of all rows, and bets on that with a capital of 1, at odds that are fair
or worse if the claim is false. If it is false, the probability that the capital ever reaches 1 / `error` is at most
`error` (Ville's inequality), however long the game lasts. So "different" is wrong in at most that share of all
rollouts. "same" is the same bet on the opposite claim.

Each bet is on x, the share of a request's rows that changed, so rows of one request need not be independent. The rate
is that of the requests so far: a new kind of request may change the conclusion.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Final

import numpy as np

from stoker.errors import ArgumentError
from stoker.serve.signature import Array
from stoker.units import percent, quantity

ALLOWED: Final = 0.01
ERROR: Final = 0.01
# How many rates each side bets on, each with an equal part of its capital, as nobody knows the true rate beforehand.
_RATES_ABOVE, _RATES_BELOW = 12, 4


class Conclusion(Enum):
    """The conclusion from the answers so far."""

    SAME = "same"
    DIFFERENT = "different"
    OPEN = "not enough yet"


class _Bet:
    """Capital put on rates on one side of the allowed one. The truer a rate turns out, the faster its part grows."""

    def __init__(self, rates: list[float], allowed: float) -> None:
        # A stake of (rate - allowed) / (allowed * (1 - allowed)) turns a capital of 1 into rate / allowed at x = 1,
        # and into (1 - rate) / (1 - allowed) at x = 0: likelihood ratios.
        self._stakes = (np.array(rates) - allowed) / (allowed * (1.0 - allowed))
        self._allowed = allowed
        self._logs = np.zeros(len(rates))

    def play(self, shares: Array) -> Array:
        """Return the logarithm of the capital after each of these requests."""
        factors = 1.0 + self._stakes * (shares[:, None] - self._allowed)
        with np.errstate(divide="ignore"):
            # Lost capital stays lost.
            logs = self._logs + np.cumsum(np.log(np.maximum(factors, 0.0)), axis=0)
        self._logs = logs[-1]
        found: Array = np.logaddexp.reduce(logs, axis=1) - math.log(len(self._logs))
        return found


class AgreementTest:
    """A test of whether two versions' answers differ in more than `allowed` of the rows."""

    def __init__(self, allowed: float = ALLOWED, error: float = ERROR) -> None:
        """Start without evidence.

        Args:
            allowed: the share of rows that may change, more than 0 and less than 1.
            error: the probability of a wrong "different", and of a wrong "same".
        """
        if not (0.0 < allowed < 1.0 and 0.0 < error < 1.0):
            raise ArgumentError(f"allowed and error must be between 0 and 1, got {allowed:g} and {error:g}")
        self.allowed, self.error = allowed, error
        self.requests, self._shares = 0, 0.0
        self.conclusion = Conclusion.OPEN
        steps = range(1, _RATES_ABOVE + 1)
        self._above = _Bet([allowed ** (1.0 - step / (_RATES_ABOVE + 1)) for step in steps], allowed)
        self._below = _Bet([allowed * step / _RATES_BELOW for step in range(_RATES_BELOW)], allowed)

    @property
    def changed(self) -> float:
        """The share of rows that changed, on average over the requests."""
        return self._shares / max(1, self.requests)

    def add(self, *shares: float) -> Conclusion:
        """Add requests, given the share of changed rows of each. The first conclusion stays."""
        if not shares:
            return self.conclusion
        given = np.array(shares)
        self.requests += len(given)
        self._shares += float(given.sum())
        if self.conclusion is Conclusion.OPEN:
            needed = -math.log(self.error)
            differs, agrees = (bet.play(given) >= needed for bet in (self._above, self._below))
            # The two cannot hold at the same time; if both are reached among these requests, the first counts.
            if differs.any() and (not agrees.any() or differs.argmax() < agrees.argmax()):
                self.conclusion = Conclusion.DIFFERENT
            elif agrees.any():
                self.conclusion = Conclusion.SAME
        return self.conclusion

    def describe(self) -> str:
        """Return the conclusion in one line."""
        count = f"{percent(self.changed)} of rows changed in {quantity(self.requests, 'request')}"
        if self.conclusion is Conclusion.OPEN:
            return f"not enough yet: {count}; {percent(self.allowed)} may change"
        bound = "more" if self.conclusion is Conclusion.DIFFERENT else "fewer"
        return (
            f"{self.conclusion.value}: {bound} than {percent(self.allowed)} of rows change "
            f"({count}; wrong in at most {percent(self.error)} of rollouts)"
        )
