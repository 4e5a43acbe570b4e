"""Maps inside an interleave taken out of it and moved behind the batch.

The datasets that an interleave reads are made in its function, so no map in there can be batched where it is: an
interleave mixes elements of several datasets, and a batch inside would hold others. But a map at the end of that
function, which knows nothing of the function's argument, does the same after the interleave, whatever the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from stoker.data.tuning import batching, effects, stages
from stoker.data.tuning.changes import Change, Left, Request, map_behind_batch
from stoker.data.tuning.rebuilding import comparable, kept, replaced
from stoker.tf_internals.datasets import map_function, python_function
from stoker.tf_internals.functions import convert
from stoker.tf_internals.graphs import new_graph
from stoker.tf_internals.pipelines import nest

NAME = "map moved out of interleave and behind batch"
_READS_MANY = ("Interleave", "ParallelInterleave", "FlatMap")
_MAPS = ("Map", "ParallelMap")


def proposals(pipeline: Any, request: Request) -> Iterator[Change | Left]:
    """For every interleave or flat_map whose function ends in maps that can be moved."""
    for stage in stages.below(pipeline):
        if stages.kind(stage) not in _READS_MANY or stages.is_generator(stage):
            continue
        outside = _taken_out(stage)
        if outside is None:
            continue
        moved = replaced(pipeline, stage, outside)
        for change in map_behind_batch.proposals(moved, request):
            if isinstance(change, Change):
                pieces = comparable(stage), comparable(outside)
                yield Change(NAME, f"{stages.described(stage)}: {change.stage}", change.pipeline, pieces)


def _taken_out(stage: Any) -> Any:
    """The stage with the last maps of its function behind it; None if there are none that can be."""
    if effects.of(map_function(stage)).why_not_pure or not _plain(stages.inputs(stage)[0]):
        return None
    function = python_function(map_function(stage))
    maps = _last_maps(function, stages.inputs(stage)[0].element_spec)
    if not maps:
        return None
    made = type(stage)(stages.inputs(stage)[0], **(kept(stage) | {"map_func": _without(function, len(maps))}))
    for one in reversed(maps):
        made = made.map(one, num_parallel_calls=tf.data.AUTOTUNE)
    return made if made.element_spec == stage.element_spec else None


def _plain(dataset: Any) -> bool:
    return all(isinstance(spec, tf.TensorSpec) for spec in nest.flatten(dataset.element_spec))


def _last_maps(function: Callable[..., Any], specs: Any) -> list[Callable[..., Any]]:
    """The functions of the maps at the end, the last one first."""
    graph = new_graph("stages_inside")
    found = []
    with graph.as_default():
        given = nest.map_structure(lambda spec: tf.compat.v1.placeholder(spec.dtype, spec.shape), specs)
        inside = convert(function)(*(given if type(given) is tuple else (given,)))
        while stages.kind(inside) in _MAPS:
            wrapper = map_function(inside)
            captured = wrapper.function.captured_inputs
            if effects.of(wrapper).why_not_pure or not all(hasattr(one, "numpy") for one in captured):
                # It has effects, or uses what the function was given.
                break
            found.append(python_function(wrapper))
            (inside,) = stages.inputs(inside)
    return found


def _without(function: Callable[..., Any], maps: int) -> Callable[..., Any]:
    converted = convert(function)

    def shorter(*args: Any) -> Any:
        inside = converted(*args)
        for _ in range(maps):
            (inside,) = stages.inputs(inside)
        return inside

    return batching.named_like(function, shorter)
