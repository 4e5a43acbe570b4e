"""Give maps as many parallel calls as pay off, instead of one or a fixed number."""

from __future__ import annotations

import os

import tensorflow as tf

from stoker.data.tuning import effects, stages
from stoker.data.tuning.changes import PipelineChange, Proposals, TuningRequest
from stoker.data.tuning.figures import LeftAlone
from stoker.data.tuning.rebuilding import rebuild, replace_stage
from stoker.tf_internals.datasets import argument, map_function
from stoker.tf_internals.pipelines import map_in_parallel
from stoker.tf_internals.types import Dataset

NAME = "parallel calls"


def proposals(pipeline: Dataset, request: TuningRequest) -> Proposals:
    """Propose one change for each map that could have more parallel calls."""
    for stage in stages.list_stages(pipeline):
        if stages.kind(stage) not in ("Map", "ParallelMap"):
            continue
        calls = stages.constant(argument(stage, "num_parallel_calls", None))
        if calls is not None and (calls == tf.data.AUTOTUNE or calls >= (os.cpu_count() or 1)):
            continue
        why = effects.find_effects(map_function(stage)).why_not_pure
        if why:
            # It may depend on running one call at a time.
            yield LeftAlone(NAME, stages.describe(stage), why)
            continue
        yield PipelineChange(
            NAME, stages.describe(stage), replace_stage(pipeline, stage, _make_parallel(stage))
        )


def _make_parallel(stage: Dataset) -> Dataset:
    source = stages.inputs(stage)
    if stages.kind(stage) == "ParallelMap":
        return rebuild(stage, source, num_parallel_calls=tf.data.AUTOTUNE)
    return map_in_parallel(source[0], map_function(stage), argument(stage, "preserve_cardinality"))
