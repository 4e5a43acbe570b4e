"""Freezing layers: for good, until a step, or during a range of steps.

    freeze="encoder"                          for the whole run
    freeze={"encoder": 1000}                  until 1000 updates were made
    freeze={"encoder": range(500, 1000)}      in these updates only

A frozen variable and its slots in the optimizer stay as they are, and its gradient counts in no norm. The optimizer
is built on all variables at the start, so that unfreezing needs no new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Tensor
from stoker.train.update.names import choose

# True: for good. A number: until so many updates were made. A range: during these updates.
Span: TypeAlias = bool | int | range


def choose_spans(
    freeze: str | Iterable[str] | Mapping[str, Span] | None, paths: Sequence[str]
) -> list[Span | None]:
    """For each variable when it is frozen; None is never."""
    spans = _spans(freeze)
    for pattern, span in spans.items():
        _check(pattern, span)
    return [None if span is False else span for span in choose(spans, paths, "freeze")]


def by_span(spans: Sequence[Span | None]) -> dict[Span | None, list[int]]:
    """The indices of the variables that are ever trained, by their span."""
    groups: dict[Span | None, list[int]] = {}
    for index, span in enumerate(spans):
        if span is not True:
            groups.setdefault(span, []).append(index)
    return groups


def trained(span: Span | None, step: Tensor) -> Tensor:
    """Whether a group of this span is trained at a step: a Python bool where the step does not matter."""
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


def _check(pattern: str, span: Span) -> None:
    good = isinstance(span, bool) or (isinstance(span, int) and span > 0)
    if not good and not (isinstance(span, range) and span.step == 1 and 0 <= span.start < span.stop):
        raise ArgumentError(
            f"freeze[{pattern!r}] = {span!r}: give True (for good), the number of updates until it thaws, or a range."
        )


def mask(gradients: Sequence[Tensor], active: Sequence[Tensor]) -> list[Tensor]:
    """Gradients with those of frozen variables at zero, so that they count in no norm."""
    return [
        gradient if on is True else tf.where(on, gradient, tf.zeros_like(gradient))
        for gradient, on in zip(gradients, active, strict=True)
    ]
