"""What is the same in every epoch is kept in memory: a cache before the first stage that is random."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from stoker import units
from stoker.data.tuning import comparing, effects, stages
from stoker.data.tuning.changes import Change, Left, Request
from stoker.data.tuning.rebuilding import SOURCES, fresh, rebuilt, replaced
from stoker.tf_internals.datasets import argument

NAME = "cache"
_SAMPLED = 16
_COMPARED = 12
# How long the elements of a pipeline that does not know its length may be counted.
_COUNTING_S = 3.0
_FILES = ("TextLine", "TFRecord", "FixedLengthRecord")


def proposals(pipeline: Any, request: Request) -> Iterator[Change | Left]:
    """A cache at the last stage below which all is the same in every epoch."""
    chain = _chain(pipeline)
    place = next((number for number, stage in enumerate(chain) if _repeats(stage)), None)
    if place is None or not _works(chain[place]):
        return
    if any(stages.kind(stage) in ("Cache", "Take", "TakeWhile") for stage in chain[:place]):
        # Cached later on anyway; or an epoch does not reach the end, and the cache would never be complete.
        return
    stage = chain[place]
    while stages.kind(stage) in ("Prefetch", "Options"):
        (stage,) = stages.inputs(stage)
    found = _size(stage)
    if found is None:
        yield Left(NAME, stages.described(stage), "how many elements it has is not known")
    elif found > request.memory:
        why = f"{units.size(found)} do not fit into the {units.size(request.memory)} it may take"
        yield Left(NAME, stages.described(stage), why)
    else:
        words = f"{stages.described(stage)}, {units.size(found)}"
        few = stage.take(_COMPARED)
        yield Change(NAME, words, replaced(pipeline, stage, stage.cache()), (few, few.cache()))


def in_later_epochs(pipeline: Any, seconds: float) -> Any:
    """A pipeline to be timed in place of one with caches: so short that its first epoch is over after `seconds`."""

    def visit(stage: Any, new_inputs: list[Any]) -> Any:
        if stages.kind(stage) != "Cache":
            return None
        source = stages.inputs(stage)[0]
        return rebuilt(stage, [new_inputs[0].take(_few(source, _above(pipeline, stage), seconds))])

    if not any(stages.kind(stage) == "Cache" for stage in stages.below(pipeline)):
        return pipeline
    return fresh(pipeline, visit)


def _above(pipeline: Any, stage: Any) -> list[Any]:
    return [one for one in stages.below(pipeline) if any(below is stage for below in stages.below(one))]


def _chain(pipeline: Any) -> list[Any]:
    """The stages from the last down, as long as each has one input."""
    chain = [pipeline]
    while len(below := stages.inputs(chain[-1])) == 1:
        chain.append(below[0])
    return chain


def _repeats(stage: Any) -> bool:
    """Whether this stage gives the same in every epoch, for certain."""
    for one in stages.below(stage):
        kind = stages.kind(one)
        if kind in ("Shuffle", "Cache", "Repeat") or stages.is_generator(one):
            return False
        if any(effects.of(function).why_not_pure for function in stages.functions(one)):
            return False
    return True


def _works(stage: Any) -> bool:
    """Whether there is work below that a cache would save."""
    below = list(stages.below(stage))
    return any(stages.functions(one) or stages.kind(one) in _FILES for one in below if _kept(one))


def _kept(stage: Any) -> bool:
    return stages.kind(stage) not in SOURCES or stages.kind(stage) in _FILES


def _size(stage: Any) -> int | None:
    """The bytes of all elements, from a few of them."""
    sampled = [comparing.size(element) for element in fresh(stage).take(_SAMPLED)]
    count = int(stage.cardinality())
    if count == tf.data.UNKNOWN_CARDINALITY:
        count = _count(stage)
    if count < 0:
        return None
    return count * sum(sampled) // max(1, len(sampled))


def _count(stage: Any) -> int:
    begin, count = time.perf_counter(), 0
    for _ in fresh(stage):
        count += 1
        if time.perf_counter() - begin > _COUNTING_S:
            return int(tf.data.UNKNOWN_CARDINALITY)
    return count


def _few(stage: Any, above: list[Any], seconds: float) -> int:
    """How many elements to try it with: what takes this long to make, but enough for a few batches."""
    least = 4
    for one in above:
        least *= int(stages.constant(argument(one, "batch_size", 1)))
    begin, count = time.perf_counter(), 0
    for _ in fresh(stage):
        count += 1
        if count >= least and time.perf_counter() - begin > seconds:
            break
    return count
