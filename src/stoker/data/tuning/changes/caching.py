"""Cache in memory what is the same in every epoch, before the first random stage."""

from __future__ import annotations

import time

import tensorflow as tf

from stoker import units
from stoker.data.tuning import comparing, effects, stages
from stoker.data.tuning.changes import PipelineChange, Proposals, TuningRequest
from stoker.data.tuning.figures import LeftAlone
from stoker.data.tuning.rebuilding import SOURCES, rebuild, renew, replace_stage
from stoker.tf_internals.datasets import argument
from stoker.tf_internals.types import Dataset

NAME = "cache"
_SAMPLED = 16
_COMPARED = 12
# How long to count the elements of a pipeline of unknown length.
_COUNTING_S = 3.0
_FILES = ("TextLine", "TFRecord", "FixedLengthRecord")


def proposals(pipeline: Dataset, request: TuningRequest) -> Proposals:
    """Propose a cache after the last stage that gives the same elements in every epoch."""
    chain = _chain(pipeline)
    place = next((number for number, stage in enumerate(chain) if _repeats(stage)), None)
    if place is None or not _would_save_work(chain[place]):
        return
    if any(stages.kind(stage) in ("Cache", "Take", "TakeWhile") for stage in chain[:place]):
        # There is a cache later on, or an epoch does not reach the end, so that a cache would never be complete.
        return
    stage = chain[place]
    while stages.kind(stage) in ("Prefetch", "Options"):
        (stage,) = stages.inputs(stage)
    found = _size(stage)
    if found is None:
        yield LeftAlone(NAME, stages.describe(stage), "its number of elements is unknown")
    elif found > request.memory:
        why = f"{units.size(found)} does not fit into the {units.size(request.memory)} that a cache may take"
        yield LeftAlone(NAME, stages.describe(stage), why)
    else:
        words = f"{stages.describe(stage)}, {units.size(found)}"
        few = stage.take(_COMPARED)
        yield PipelineChange(NAME, words, replace_stage(pipeline, stage, stage.cache()), (few, few.cache()))


def shorten_first_epoch(pipeline: Dataset, seconds: float) -> Dataset:
    """Return a pipeline to time in place of one with caches, so short that its first epoch ends after `seconds`."""

    def visit(stage: Dataset, new_inputs: list[Dataset]) -> Dataset | None:
        if stages.kind(stage) != "Cache":
            return None
        source = stages.inputs(stage)[0]
        return rebuild(
            stage, [new_inputs[0].take(_choose_count(source, _list_above(pipeline, stage), seconds))]
        )

    if not any(stages.kind(stage) == "Cache" for stage in stages.list_stages(pipeline)):
        return pipeline
    return renew(pipeline, visit)


def _list_above(pipeline: Dataset, stage: Dataset) -> list[Dataset]:
    return [
        one
        for one in stages.list_stages(pipeline)
        if any(below is stage for below in stages.list_stages(one))
    ]


def _chain(pipeline: Dataset) -> list[Dataset]:
    """Return the stages from the last down, as long as each has one input."""
    chain = [pipeline]
    while len(below := stages.inputs(chain[-1])) == 1:
        chain.append(below[0])
    return chain


def _repeats(stage: Dataset) -> bool:
    """Return whether this stage is certain to give the same elements in every epoch."""
    for one in stages.list_stages(stage):
        kind = stages.kind(one)
        if kind in ("Shuffle", "Cache", "Repeat") or stages.is_generator(one):
            return False
        if any(effects.find_effects(function).why_not_pure for function in stages.functions(one)):
            return False
    return True


def _would_save_work(stage: Dataset) -> bool:
    """Return whether there is work below that a cache would save."""
    return any(
        stages.kind(one) in _FILES or (stages.kind(one) not in SOURCES and stages.functions(one))
        for one in stages.list_stages(stage)
    )


def _size(stage: Dataset) -> int | None:
    """Return the bytes of all elements, estimated from a few of them."""
    sampled = [comparing.size(element) for element in renew(stage).take(_SAMPLED)]
    count = int(stage.cardinality())
    if count == tf.data.UNKNOWN_CARDINALITY:
        count = _count(stage)
    if count < 0:
        return None
    return count * sum(sampled) // max(1, len(sampled))


def _count(stage: Dataset) -> int:
    begin, count = time.perf_counter(), 0
    for _ in renew(stage):
        count += 1
        if time.perf_counter() - begin > _COUNTING_S:
            return int(tf.data.UNKNOWN_CARDINALITY)
    return count


def _choose_count(stage: Dataset, above: list[Dataset], seconds: float) -> int:
    """Return how many elements to try: as many as take this long, but enough for a few batches."""
    least = 4
    for one in above:
        least *= int(stages.constant(argument(one, "batch_size", 1)))
    begin, count = time.perf_counter(), 0
    for _ in renew(stage):
        count += 1
        if count >= least and time.perf_counter() - begin > seconds:
            break
    return count
