"""Read `from_generator` in chunks: one call into Python for many rows."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from stoker.data.tuning import effects, generators, stages
from stoker.data.tuning.changes import PipelineChange, Proposals, TuningRequest
from stoker.data.tuning.figures import LeftAlone
from stoker.data.tuning.rebuilding import rebuild, replace_stage
from stoker.tf_internals.datasets import argument
from stoker.tf_internals.types import Dataset, Nest

NAME = "generator drained in chunks"
_COMPARED = 300


def proposals(pipeline: Dataset, request: TuningRequest) -> Proposals:
    """Propose chunks for every generator whose rows have one shape."""
    everything = list(stages.list_stages(pipeline))
    for stage in everything:
        if not stages.is_generator(stage):
            continue
        found = generators.source(stage)
        if found is not None and generators.is_chunked(found):
            continue
        # A generator that runs ahead of other Python code might miss changes that the code makes.
        others = [one for one in everything if one is not stage]
        alone = not any(
            effects.find_effects(function).python for one in others for function in stages.functions(one)
        )
        batch = _find_batch_above(stage, everything)
        why = _explain_refusal(stage, others, alone or batch is not None)
        if why is not None or found is None:
            yield LeftAlone(NAME, stages.describe(stage), why or "its Python function cannot be found")
            continue
        yield _chunk(pipeline, stage if batch is None else batch, stage, found, alone)


def _find_batch_above(stage: Dataset, everything: list[Dataset]) -> Dataset | None:
    """Return the batch that is the only reader of this stage; None if there is another reader."""
    above = [one for one in everything if any(source is stage for source in stages.inputs(one))]
    return above[0] if len(above) == 1 and stages.kind(above[0]) == "Batch" else None


def _explain_refusal(stage: Dataset, others: list[Dataset], ordered: bool) -> str | None:
    if not stages.is_static(stage):
        return "its rows have no fixed shape: give it an output_signature with complete shapes"
    if any(stages.is_generator(one) for one in others):
        return "there is another generator, and the two may share state"
    if not ordered:
        return "another stage runs Python code, too, and the two may share state"
    return None


def _chunk(
    pipeline: Dataset, old: Dataset, stage: Dataset, found: generators.GeneratorSource, ahead: bool
) -> PipelineChange:
    def make(source: generators.GeneratorSource) -> Dataset:
        if old is stage:
            return generators.rows(source)
        size, drop = (stages.constant(argument(old, name)) for name in ("batch_size", "drop_remainder"))
        return generators.batches(source, size, drop, ahead)

    # Compare both on the same rows: a generator may yield different ones each time.
    replayed = replace(found, generator=_replay(found), args=())
    before = generators.make_plain(replayed)
    if old is not stage:
        before = rebuild(old, [before])
    return PipelineChange(
        NAME, stages.describe(stage), replace_stage(pipeline, old, make(found)), (before, make(replayed))
    )


def _replay(found: generators.GeneratorSource) -> Callable[[], Iterator[Nest]]:
    """Return a generator of another one's first rows, including an error that follows them."""
    rows = iter(found.generator(*(arg.numpy() for arg in found.args)))
    recorded: list[Nest] = []
    failed: Exception | None = None
    try:
        recorded += (copy.deepcopy(row) for row in itertools.islice(rows, _COMPARED))
    except Exception as error:  # noqa: BLE001 - the user's own error, raised again below
        failed = error

    def replay() -> Iterator[Nest]:
        yield from recorded
        if failed is not None:
            raise failed

    return replay
