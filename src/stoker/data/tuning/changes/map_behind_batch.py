"""Move maps behind the batch, so that the function is called once per batch instead of once per element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import tensorflow as tf

from stoker.data.tuning import batching, effects, stages
from stoker.data.tuning.changes import PipelineChange, Proposals, TuningRequest
from stoker.data.tuning.comparing import EXACT
from stoker.data.tuning.emitting import NotProven
from stoker.data.tuning.figures import LeftAlone
from stoker.data.tuning.rebuilding import rebuild, renew, replace_stage
from stoker.errors import first_line
from stoker.tf_internals.datasets import batch_spec, map_function
from stoker.tf_internals.pipelines import nest
from stoker.tf_internals.types import Dataset, Nest

NAME = "map moved behind batch"
BATCHES = ("Batch", "ParallelBatch")
_MAPS = ("Map", "ParallelMap")
# Stages that choose or order elements without reading them: a map may come after them.
BLIND = ("Shuffle", "Repeat", "Take", "Skip", "Shard", "Prefetch", "Options")
# For the comparison: enough rows for full batches and a remainder.
_ROWS, _BATCH = 165, 64

OfBatch = Callable[..., Nest]


@dataclass
class _MapsBelow:
    """The stages below a batch: the maps that can be moved, and those that stay."""

    source: Dataset
    # In order from the source up.
    maps: list[tuple[Dataset, OfBatch]] = field(default_factory=list)
    blind: list[Dataset] = field(default_factory=list)


def proposals(pipeline: Dataset, request: TuningRequest) -> Proposals:
    """Propose, for every batch, to move all maps below it down to the first that cannot be moved."""
    for batch in stages.list_stages(pipeline):
        if stages.kind(batch) not in BATCHES:
            continue
        chain, left = _find_movable(batch, request)
        yield from left
        if chain.maps:
            named = ", ".join(stages.describe(one) for one, _ in chain.maps)
            yield PipelineChange(
                NAME, named, replace_stage(pipeline, batch, _move(batch, chain)), _make_pieces(chain)
            )


def _find_movable(batch: Dataset, request: TuningRequest) -> tuple[_MapsBelow, list[LeftAlone]]:
    chain, left = _MapsBelow(stages.inputs(batch)[0]), []
    at = chain.source
    blind: list[Dataset] = []
    while stages.kind(at) in (*BLIND, *_MAPS):
        if stages.kind(at) in BLIND:
            blind.insert(0, at)
        else:
            try:
                of_batch = _prove(at, request.allow)
            except NotProven as why:
                left.append(LeftAlone(NAME, stages.describe(at), str(why)))
                break
            chain.maps.insert(0, (at, of_batch))
            chain.blind = blind + chain.blind
            chain.source = stages.inputs(at)[0]
            blind = []
        at = stages.inputs(at)[0]
    return chain, left


def _prove(stage: Dataset, allow: str) -> OfBatch:
    """Return the function of a map for batches.

    Raises:
        NotProven: the function may not do the same.
    """
    if not stages.is_static(stages.inputs(stage)[0]):
        raise NotProven("its input is ragged, sparse or of unknown shape")
    wrapper = map_function(stage)
    why = effects.find_effects(wrapper).why_not_pure
    if why:
        raise NotProven(why)
    if not stages.is_dense(stage):
        raise NotProven("its result is ragged, sparse or a dataset")
    of_batch, exact = batching.rewrite_for_batches(wrapper)
    try:
        _trace(of_batch, stage)
    except NotProven as no_rule:
        return _convert(stage, allow, no_rule)
    if allow == EXACT and not all(exact):
        raise NotProven('floats would differ in the last place (allow="last-place" permits that)')
    return of_batch


def _convert(stage: Dataset, allow: str, no_rule: NotProven) -> OfBatch:
    """Return the function as TensorFlow converts it, if that changes no bit or is allowed to change some."""
    wrapper = map_function(stage)
    if any("Random" in node.op for node in effects.nodes(wrapper.function.graph)):
        raise NotProven("it draws random numbers from a seed that each element has")
    if allow == EXACT and not batching.has_exact_operations(wrapper):
        raise no_rule
    of_batch = batching.convert_for_batches(wrapper)
    try:
        _trace(of_batch, stage)
    except (ValueError, TypeError, NotImplementedError) as error:
        raise NotProven(f"{no_rule}; TensorFlow cannot convert it ({first_line(error)[:80]})") from None
    return of_batch


def _trace(of_batch: OfBatch, stage: Dataset) -> None:
    specs = nest.map_structure(batch_spec, stages.inputs(stage)[0].element_spec)
    traced = tf.function(of_batch, autograph=False)
    traced.get_concrete_function(*(specs if type(specs) is tuple else (specs,)))


def _move(batch: Dataset, chain: _MapsBelow) -> Dataset:
    made = chain.source
    for stage in chain.blind:
        made = rebuild(stage, [made])
    return _map_behind(rebuild(batch, [made]), chain, batch.element_spec)


def _map_behind(batched: Dataset, chain: _MapsBelow, wanted: Nest) -> Dataset:
    made = batched
    for number, (_, of_batch) in enumerate(chain.maps, 1):
        function = of_batch if number < len(chain.maps) else fix_shapes(of_batch, wanted)
        made = made.map(function, num_parallel_calls=tf.data.AUTOTUNE)
    return made


def fix_shapes(of_batch: OfBatch, wanted: Nest) -> OfBatch:
    """Return the same function, with the shapes that the batches had before."""

    def call_with_shapes(*args: Nest) -> Nest:
        result = of_batch(*args)
        for tensor, spec in zip(nest.flatten(result), nest.flatten(wanted), strict=True):
            tensor.set_shape(spec.shape)
        return result

    return batching.name_like(of_batch, call_with_shapes)


def _make_pieces(chain: _MapsBelow) -> tuple[Dataset, Dataset] | None:
    """Return both pieces on the same recorded elements, whatever their source."""
    elements = list(renew(chain.source).take(_ROWS))
    if not elements:
        return None
    stacked = [tf.stack(parts) for parts in zip(*(nest.flatten(one) for one in elements), strict=True)]
    recorded = tf.data.Dataset.from_tensor_slices(nest.pack_sequence_as(chain.source.element_spec, stacked))
    before = recorded
    for stage, _ in chain.maps:
        before = rebuild(stage, [before])
    before = before.batch(_BATCH)
    return before, _map_behind(recorded.batch(_BATCH), chain, before.element_spec)
