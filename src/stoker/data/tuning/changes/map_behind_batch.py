"""Maps moved behind the batch: the function is called once for a batch instead of once for every element of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from stoker.data.tuning import batching, effects, stages
from stoker.data.tuning.changes import Change, Left, Request
from stoker.data.tuning.comparing import EXACT
from stoker.data.tuning.emitting import NotProven
from stoker.data.tuning.rebuilding import fresh, rebuilt, replaced
from stoker.tf_internals.datasets import batch_spec, map_function
from stoker.tf_internals.pipelines import nest

NAME = "map moved behind batch"
BATCHES = ("Batch", "ParallelBatch")
_MAPS = ("Map", "ParallelMap")
# Stages that choose or order elements without looking at them: a map may as well come after.
BLIND = ("Shuffle", "Repeat", "Take", "Skip", "Shard", "Prefetch", "Options")
# For the comparison: full batches and a remainder.
_ROWS, _BATCH = 165, 64

OfBatch = Callable[..., Any]


@dataclass
class _Chain:
    """What lies below a batch: the maps that can be moved, and what stays."""

    source: Any
    # From the source up.
    maps: list[tuple[Any, OfBatch]] = field(default_factory=list)
    blind: list[Any] = field(default_factory=list)


def proposals(pipeline: Any, request: Request) -> Iterator[Change | Left]:
    """For every batch, all maps below it up to the first that cannot be moved."""
    for batch in stages.below(pipeline):
        if stages.kind(batch) not in BATCHES:
            continue
        chain, left = _movable(batch, request)
        yield from left
        if chain.maps:
            named = ", ".join(stages.described(one) for one, _ in chain.maps)
            yield Change(NAME, named, replaced(pipeline, batch, _moved(batch, chain)), _pieces(batch, chain))


def _movable(batch: Any, request: Request) -> tuple[_Chain, list[Left]]:
    chain, left = _Chain(stages.inputs(batch)[0]), []
    at = chain.source
    blind: list[Any] = []
    while stages.kind(at) in (*BLIND, *_MAPS):
        if stages.kind(at) in BLIND:
            blind.insert(0, at)
        else:
            try:
                of_batch = _proven(at, request.allow)
            except NotProven as why:
                left.append(Left(NAME, stages.described(at), str(why)))
                break
            chain.maps.insert(0, (at, of_batch))
            chain.blind = blind + chain.blind
            chain.source = stages.inputs(at)[0]
            blind = []
        at = stages.inputs(at)[0]
    return chain, left


def _proven(stage: Any, allow: str) -> OfBatch:
    """The function of a map for batches.

    Raises:
        NotProven: it is not known to do the same.
    """
    if not stages.static(stages.inputs(stage)[0]):
        raise NotProven("its input is ragged, sparse or of unknown shape")
    wrapper = map_function(stage)
    why = effects.of(wrapper).why_not_pure
    if why:
        raise NotProven(why)
    if not all(isinstance(spec, tf.TensorSpec) for spec in nest.flatten(stage.element_spec)):
        raise NotProven("its result is ragged, sparse or a dataset")
    of_batch, exact = batching.batched(wrapper)
    try:
        _trace(of_batch, stage)
    except NotProven as no_rule:
        return _converted(stage, allow, no_rule)
    if allow == EXACT and not all(exact):
        raise NotProven(
            'it would be equal but for the last place of floats (allow="last-place" permits that)'
        )
    return of_batch


def _converted(stage: Any, allow: str, no_rule: NotProven) -> OfBatch:
    """By TensorFlow's conversion, where it is known to keep every bit, or need not."""
    wrapper = map_function(stage)
    if any("Random" in node.op for node in effects.nodes(wrapper.function.graph)):
        raise NotProven("it draws random numbers from a seed of each element's own")
    if allow == EXACT and not batching.exact_operations(wrapper):
        raise no_rule
    of_batch = batching.in_parallel(wrapper)
    try:
        _trace(of_batch, stage)
    except (ValueError, TypeError, NotImplementedError) as error:
        raise NotProven(
            f"{no_rule}; TensorFlow cannot convert it ({str(error).splitlines()[0][:80]})"
        ) from None
    return of_batch


def _trace(of_batch: OfBatch, stage: Any) -> None:
    specs = nest.map_structure(batch_spec, stages.inputs(stage)[0].element_spec)
    traced = tf.function(of_batch, autograph=False)
    traced.get_concrete_function(*(specs if type(specs) is tuple else (specs,)))


def _moved(batch: Any, chain: _Chain) -> Any:
    made = chain.source
    for stage in chain.blind:
        made = rebuilt(stage, [made])
    return _behind(rebuilt(batch, [made]), chain, batch.element_spec)


def _behind(batched: Any, chain: _Chain, wanted: Any) -> Any:
    made = batched
    for number, (_, of_batch) in enumerate(chain.maps, 1):
        function = of_batch if number < len(chain.maps) else _shaped(of_batch, wanted)
        made = made.map(function, num_parallel_calls=tf.data.AUTOTUNE)
    return made


def _shaped(of_batch: OfBatch, wanted: Any) -> OfBatch:
    """The same function, its results with the shapes that the batches had before."""

    def shaped(*args: Any) -> Any:
        result = of_batch(*args)
        for tensor, spec in zip(nest.flatten(result), nest.flatten(wanted), strict=True):
            tensor.set_shape(spec.shape)
        return result

    return batching.named_like(of_batch, shaped)


def _pieces(batch: Any, chain: _Chain) -> tuple[Any, Any] | None:
    """Both ways on the same recorded elements, whatever they came from."""
    elements = list(fresh(chain.source).take(_ROWS))
    if not elements:
        return None
    stacked = [tf.stack(parts) for parts in zip(*(nest.flatten(one) for one in elements), strict=True)]
    recorded = tf.data.Dataset.from_tensor_slices(nest.pack_sequence_as(chain.source.element_spec, stacked))
    before = recorded
    for stage, _ in chain.maps:
        before = rebuilt(stage, [before])
    before = before.batch(_BATCH)
    return before, _behind(recorded.batch(_BATCH), chain, before.element_spec)
