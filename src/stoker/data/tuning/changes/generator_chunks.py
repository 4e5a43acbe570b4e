"""`from_generator` drained in chunks: one call into Python for many rows."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from stoker.data.tuning import effects, generators, stages
from stoker.data.tuning.changes import Change, Left, Request
from stoker.data.tuning.rebuilding import rebuilt, replaced
from stoker.tf_internals.datasets import argument

NAME = "generator drained in chunks"
_COMPARED = 300


def proposals(pipeline: Any, request: Request) -> Iterator[Change | Left]:
    """Chunks for the generators that give rows of one shape."""
    everything = list(stages.below(pipeline))
    for stage in everything:
        if not stages.is_generator(stage):
            continue
        found = generators.source(stage)
        if found is not None and generators.is_chunked(found):
            continue
        # A generator that runs ahead of other Python code might see what that code has not done yet.
        others = [one for one in everything if one is not stage]
        alone = not any(effects.of(function).python for one in others for function in stages.functions(one))
        batch = _batch_above(stage, everything)
        why = _why_not(stage, others, alone or batch is not None)
        if why is not None or found is None:
            yield Left(NAME, stages.described(stage), why or "TensorFlow keeps it where it is not found")
            continue
        yield _chunked(pipeline, stage if batch is None else batch, stage, found, alone)


def _batch_above(stage: Any, everything: list[Any]) -> Any:
    """The batch that alone reads this stage; None if something else does."""
    above = [one for one in everything if any(source is stage for source in stages.inputs(one))]
    return above[0] if len(above) == 1 and stages.kind(above[0]) == "Batch" else None


def _why_not(stage: Any, others: list[Any], ordered: bool) -> str | None:
    if not stages.static(stage):
        return "its rows have no fixed shape: an output_signature with whole shapes would help"
    if any(stages.is_generator(one) for one in others):
        return "there is another generator, and the two may share what they read"
    if not ordered:
        return "another stage runs Python code, too, and the two may share what they read"
    return None


def _chunked(pipeline: Any, old: Any, stage: Any, found: generators.Source, ahead: bool) -> Change:
    def made(source: generators.Source) -> Any:
        if old is stage:
            return generators.rows(source)
        size, drop = (stages.constant(argument(old, name)) for name in ("batch_size", "drop_remainder"))
        return generators.batches(source, size, drop, ahead)

    # For the comparison both are given the very same rows: a generator may draw other ones each time.
    again = replace(found, generator=_replayed(found), args=())
    before = generators.plain(again)
    if old is not stage:
        before = rebuilt(old, [before])
    return Change(NAME, stages.described(stage), replaced(pipeline, old, made(found)), (before, made(again)))


def _replayed(found: generators.Source) -> Callable[[], Iterator[Any]]:
    """A generator of the first rows of another, the error that may follow them included."""
    rows = iter(found.generator(*(arg.numpy() for arg in found.args)))
    recorded: list[Any] = []
    failed: Exception | None = None
    try:
        recorded += (copy.deepcopy(row) for row in itertools.islice(rows, _COMPARED))
    except Exception as error:  # noqa: BLE001 - the user's own error, raised again below
        failed = error

    def again() -> Iterator[Any]:
        yield from recorded
        if failed is not None:
            raise failed

    return again
