"""The time that a recipe may take, from its start to the finished bundle: what each part gets, and what was cut."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from stoker import clock
from stoker.recipes.progress import say
from stoker.recipes.rows import Rows

T = TypeVar("T")

# The share of the time left when training begins that goes to all models of scikit-learn; the networks get the rest.
_FOR_RIVALS = 0.4
# The time for scoring, export, proof and leaving Python: this many seconds, plus this share of the time for starting
# and reading the data, which a busy machine stretches as much.
_FINISH_S, _FINISH_PART = 2.0, 0.8
_LEAST_FINISH_S, _MOST_FINISH_PART = 4.0, 0.4
# Another network is begun if at least this share of the time that the last one took is left, and at least a second.
_WORTH_BEGINNING, _LEAST_NETWORK_S = 0.2, 1.0
# A network is traced and compiled before its time can be checked, which takes this share of the start and the reading.
_COMPILE_PART = 0.3
# Training the chosen models again takes at most about this share of the time that passed until they were chosen.
_AGAIN = 0.75
# A model that may take too long learns from this many rows first, and then from this many times as many.
_FIRST_ROWS, _GROWTH = 1_000, 4


class Budget:
    """The time that is left, and what was cut to keep within it.

    Args:
        time_s: how long everything may take; None for no limit.
        started_ns: when the time began, as `clock.now_ns` counts; now by default.

    Attributes:
        cuts: the parts for which there was no time, one sentence each.
    """

    def __init__(self, time_s: float | None = None, started_ns: int | None = None) -> None:
        self.time_s = time_s
        self.cuts: list[str] = []
        self._started_ns = clock.now_ns() if started_ns is None else started_ns
        self._finish_s: float | None = None
        self._start_s = 0.0
        self._rivals_s: float | None = None

    @property
    def elapsed_s(self) -> float:
        """The time since the start."""
        return (clock.now_ns() - self._started_ns) / 1e9

    @property
    def left_s(self) -> float:
        """The time left for training, without the time for scoring and exporting; infinite without a limit."""
        if self.time_s is None:
            return math.inf
        if self._finish_s is None:
            self._start_s = self.elapsed_s
            most = max(_LEAST_FINISH_S, _MOST_FINISH_PART * self.time_s)
            self._finish_s = min(most, max(_LEAST_FINISH_S, _FINISH_S + _FINISH_PART * self.elapsed_s))
        return self.time_s - self._finish_s - self.elapsed_s

    def cut(self, sentence: str) -> None:
        """Note and report a part for which there was no time."""
        self.cuts.append(sentence)
        say(f"  {sentence}")

    def has_time_again(self) -> bool:
        """Return whether all training so far can be done once more, on slightly more rows."""
        return self.left_s >= _AGAIN * self.elapsed_s

    def rivals_s(self) -> float:
        """Return the time left for the models of scikit-learn together."""
        if self._rivals_s is None:
            self._rivals_s = self.elapsed_s + _FOR_RIVALS * max(0.0, self.left_s)
        return min(self._rivals_s - self.elapsed_s, self.left_s)

    def shares(self, networks: Sequence[str]) -> Iterator[tuple[str, float | None]]:
        """Yield each network with the time it may take; None without a limit. Networks without time are left out."""
        before_s = 0.0
        for number, name in enumerate(networks):
            left_s = self.left_s
            if left_s < max(_LEAST_NETWORK_S, _WORTH_BEGINNING * before_s, _COMPILE_PART * self._start_s):
                self.cut(f"No time to train the network {name!r}.")
                continue
            since = self.elapsed_s
            share_s = left_s / (len(networks) - number)
            yield name, None if math.isinf(share_s) else share_s
            before_s = self.elapsed_s - since

    def fit_in_time(
        self, name: str, fit: Callable[[Rows], T], train: Rows, limit_s: float, power: float = 1.1
    ) -> tuple[T, Rows, float]:
        """Train a model on as many rows as there is time for.

        Without a limit, these are all rows. Otherwise, a part of the rows is tried first, then four times as many.

        Args:
            name: the name of the model, for messages.
            fit: trains a model.
            train: the rows.
            limit_s: how long the training may take.
            power: the time of a fit grows with the rows to this power; 0 if a fit takes no time.

        Returns:
            The model, the rows it learned from, and the seconds it took.
        """
        if math.isinf(limit_s) or not power:
            return fit(train), train, 0.0
        ends_s = self.elapsed_s + limit_s
        count = min(len(train), _FIRST_ROWS)
        while True:
            begun_s = self.elapsed_s
            part = train.sample(count)
            model = fit(part)
            took_s = self.elapsed_s - begun_s
            if count == len(train):
                return model, part, took_s
            more = min(len(train), count * _GROWTH)
            if self.elapsed_s + took_s * (more / count) ** power > ends_s:
                self.cut(f"No time for all rows: {name} learned from {count:,} of {len(train):,}.")
                return model, part, took_s
            count = more
