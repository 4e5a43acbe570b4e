"""Move maps inside an interleave out of it and behind the batch.

The function of an interleave makes the datasets that it reads. A map in there cannot be batched in place, as the
interleave mixes elements of several datasets, and a batch inside would hold other elements. But a map at the end of
that function that does not use the function's argument does the same after the interleave, whatever the order.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from stoker.data.tuning import batching, effects, stages
from stoker.data.tuning.changes import PipelineChange, Proposals, TuningRequest, map_behind_batch
from stoker.data.tuning.rebuilding import arguments_of, make_comparable, replace_stage
from stoker.tf_internals.datasets import map_function, python_function
from stoker.tf_internals.functions import convert
from stoker.tf_internals.graphs import new_graph
from stoker.tf_internals.pipelines import nest
from stoker.tf_internals.types import Dataset, Nest

NAME = "map moved out of interleave and behind batch"
_READS_MANY = ("Interleave", "ParallelInterleave", "FlatMap")
_MAPS = ("Map", "ParallelMap")


def proposals(pipeline: Dataset, request: TuningRequest) -> Proposals:
    """Propose a change for every interleave or flat_map whose function ends in movable maps."""
    for stage in stages.list_stages(pipeline):
        if stages.kind(stage) not in _READS_MANY or stages.is_generator(stage):
            continue
        outside = _take_out(stage)
        if outside is None:
            continue
        moved = replace_stage(pipeline, stage, outside)
        for change in map_behind_batch.proposals(moved, request):
            if isinstance(change, PipelineChange):
                pieces = make_comparable(stage), make_comparable(outside)
                yield PipelineChange(
                    NAME, f"{stages.describe(stage)}: {change.stage}", change.pipeline, pieces
                )


def _take_out(stage: Dataset) -> Dataset | None:
    """Return the stage with its function's last maps moved behind it; None if none can be moved."""
    if effects.find_effects(map_function(stage)).why_not_pure or not stages.is_dense(stages.inputs(stage)[0]):
        return None
    function = python_function(map_function(stage))
    maps = _find_last_maps(function, stages.inputs(stage)[0].element_spec)
    if not maps:
        return None
    made = type(stage)(
        stages.inputs(stage)[0], **(arguments_of(stage) | {"map_func": _drop_maps(function, len(maps))})
    )
    for one in reversed(maps):
        made = made.map(one, num_parallel_calls=tf.data.AUTOTUNE)
    return made if made.element_spec == stage.element_spec else None


def _find_last_maps(function: Callable[..., Dataset], specs: Nest) -> list[Callable[..., Nest]]:
    """Return the functions of the maps at the end, the last one first."""
    graph = new_graph("stages_inside")
    found = []
    with graph.as_default():
        given = nest.map_structure(lambda spec: tf.compat.v1.placeholder(spec.dtype, spec.shape), specs)
        inside = convert(function)(*(given if type(given) is tuple else (given,)))
        while stages.kind(inside) in _MAPS:
            wrapper = map_function(inside)
            captured = wrapper.function.captured_inputs
            if effects.find_effects(wrapper).why_not_pure or not all(
                hasattr(one, "numpy") for one in captured
            ):
                # It has side effects, or uses the function's argument.
                break
            found.append(python_function(wrapper))
            (inside,) = stages.inputs(inside)
    return found


def _drop_maps(function: Callable[..., Dataset], maps: int) -> Callable[..., Dataset]:
    converted = convert(function)

    def drop_maps(*args: Nest) -> Dataset:
        inside = converted(*args)
        for _ in range(maps):
            (inside,) = stages.inputs(inside)
        return inside

    return batching.name_like(function, drop_maps)
