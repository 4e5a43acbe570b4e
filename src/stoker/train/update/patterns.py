"""Patterns of names, which choose learning rates for variables and freeze variables.

A pattern such as "encoder/*", "head", "bias" or "block_?/dense/kernel" is a shell pattern over a variable's path. It
may start at any layer ("dense/kernel" finds "model/encoder/dense/kernel"), and a layer's name stands for everything in
the layer.

    rates={"encoder": stoker.Times(0.1)}      a number, a schedule, or a multiple of the optimizer's own rate
    freeze="encoder"                          for the whole run
    freeze={"encoder": 1000}                  until 1000 updates have been made
    freeze={"encoder": range(500, 1000)}      in these updates only

A frozen variable and its slots in the optimizer stay as they are, and its gradient counts in no norm. The optimizer is
built on all variables at the start, so unfreezing needs no new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias, TypeVar

import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Tensor, Variable
from stoker.train.update.options import require_positive

Value = TypeVar("Value")


def path_of(variable: Variable) -> str:
    """Return a variable's path: Keras' own, or the name of a bare tf.Variable."""
    path = getattr(variable, "path", None)
    return str(path) if path else str(variable.name).partition(":")[0]


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern matches the variable with this path."""
    parts = path.split("/")
    tails = ["/".join(parts[start:]) for start in range(len(parts))]
    return any(fnmatchcase(tail, pattern) or fnmatchcase(tail, f"{pattern}/*") for tail in tails)


def choose(patterns: Mapping[str, Value], paths: Sequence[str], option: str) -> list[Value | None]:
    """Return the value of the first pattern that matches each path; a pattern that matches no path is an error."""
    for pattern in patterns:
        if not any(matches(pattern, path) for path in paths):
            known = ", ".join(paths[:8]) + (", ..." if len(paths) > 8 else "")
            raise ArgumentError(
                f"{option}: no trainable variable matches {pattern!r}. The model has: {known}"
            )
    return [
        next((value for pattern, value in patterns.items() if matches(pattern, path)), None) for path in paths
    ]


@dataclass(frozen=True)
class Times:
    """A multiple of the optimizer's rate at each step: `rates={"encoder": stoker.Times(0.1)}`."""

    factor: float

    def __post_init__(self) -> None:
        require_positive("Times", factor=self.factor)


# A rate, a keras LearningRateSchedule (or any function of the step), or a multiple of the optimizer's rate.
Rate: TypeAlias = float | Callable[[Tensor], Tensor] | Times


def choose_rates(rates: Mapping[str, Rate] | None, paths: Sequence[str]) -> list[Rate | None]:
    """Return the rate of each variable; None stands for the optimizer's own."""
    for pattern, rate in (rates or {}).items():
        _check_rate(pattern, rate)
    return choose(rates or {}, paths, "rates")


def rate_at(rate: Rate | None, step: Tensor, base: Tensor) -> Tensor:
    """Return the rate of a variable at a step; `base` is the optimizer's own rate."""
    if rate is None:
        return base
    if isinstance(rate, Times):
        return base * rate.factor
    return tf.cast(rate(step) if callable(rate) else rate, tf.float32)


def _check_rate(pattern: str, rate: Rate) -> None:
    if isinstance(rate, bool) or not (callable(rate) or isinstance(rate, (int, float, Times))):
        raise ArgumentError(
            f"rates[{pattern!r}] = {rate!r}: give a number, a schedule or stoker.Times(factor)."
        )
    if isinstance(rate, (int, float)) and rate < 0:
        raise ArgumentError(f"rates[{pattern!r}] = {rate!r}: a rate cannot be below 0.")


# True: frozen for good. A number: until that many updates were made. A range: during these updates.
Span: TypeAlias = bool | int | range


def choose_spans(
    freeze: str | Iterable[str] | Mapping[str, Span] | None, paths: Sequence[str]
) -> list[Span | None]:
    """Return when each variable is frozen; None means never."""
    spans = _spans(freeze)
    for pattern, span in spans.items():
        _check_span(pattern, span)
    return [None if span is False else span for span in choose(spans, paths, "freeze")]


def group_by_span(spans: Sequence[Span | None]) -> dict[Span | None, list[int]]:
    """Return the indices of the variables that are ever trained, grouped by span."""
    groups: dict[Span | None, list[int]] = {}
    for index, span in enumerate(spans):
        if span is not True:
            groups.setdefault(span, []).append(index)
    return groups


def is_trained(span: Span | None, step: Tensor) -> Tensor:
    """Return whether a group with this span is trained at a step: a Python bool if the step does not matter."""
    if span is None or isinstance(span, bool):
        return not span
    if isinstance(span, range):
        return (step < span.start) | (step >= span.stop)
    return step >= span


def _spans(freeze: str | Iterable[str] | Mapping[str, Span] | None) -> Mapping[str, Span]:
    if freeze is None:
        return {}
    if isinstance(freeze, str):
        return {freeze: True}
    return freeze if isinstance(freeze, Mapping) else dict.fromkeys(freeze, True)


def _check_span(pattern: str, span: Span) -> None:
    good = isinstance(span, bool) or (isinstance(span, int) and span > 0)
    if not good and not (isinstance(span, range) and span.step == 1 and 0 <= span.start < span.stop):
        raise ArgumentError(
            f"freeze[{pattern!r}] = {span!r}: give True (for good), the number of updates until it thaws, or a range."
        )


def mask(gradients: Sequence[Tensor], active: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradients with zeros for frozen variables, so that these do not count in norms."""
    return [
        gradient if on is True else tf.where(on, gradient, tf.zeros_like(gradient))
        for gradient, on in zip(gradients, active, strict=True)
    ]
