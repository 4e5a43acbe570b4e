"""Learning rates per layer: numbers, schedules, or a multiple of the optimizer's own rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Tensor
from stoker.train.update.names import choose
from stoker.train.update.options import require_positive


@dataclass(frozen=True)
class Times:
    """A multiple of the optimizer's rate, whatever that is at the step: `rates={"encoder": stoker.Times(0.1)}`."""

    factor: float

    def __post_init__(self) -> None:
        require_positive("Times", factor=self.factor)


# A rate, a keras LearningRateSchedule (or any function of the step), or a multiple of the optimizer's rate.
Rate: TypeAlias = float | Callable[[Tensor], Tensor] | Times


def choose_rates(rates: Mapping[str, Rate] | None, paths: Sequence[str]) -> list[Rate | None]:
    """For each variable its own rate; None is the optimizer's."""
    for pattern, rate in (rates or {}).items():
        _check(pattern, rate)
    return choose(rates or {}, paths, "rates")


def rate_at(rate: Rate | None, step: Tensor, base: Tensor) -> Tensor:
    """The rate of a variable at a step, where the optimizer's own is `base`."""
    if rate is None:
        return base
    if isinstance(rate, Times):
        return base * rate.factor
    return tf.cast(rate(step) if callable(rate) else rate, tf.float32)


def _check(pattern: str, rate: Rate) -> None:
    if isinstance(rate, bool) or not (callable(rate) or isinstance(rate, (int, float, Times))):
        raise ArgumentError(
            f"rates[{pattern!r}] = {rate!r}: give a number, a schedule or stoker.Times(factor)."
        )
    if isinstance(rate, (int, float)) and rate < 0:
        raise ArgumentError(f"rates[{pattern!r}] = {rate!r}: a rate cannot be below 0.")
