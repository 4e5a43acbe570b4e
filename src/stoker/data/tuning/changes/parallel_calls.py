"""Maps with as many calls at a time as pay, where there was one or a fixed number."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from stoker.data.tuning import effects, stages
from stoker.data.tuning.changes import Change, Left, Request
from stoker.data.tuning.rebuilding import rebuilt, replaced
from stoker.tf_internals.datasets import argument, map_function
from stoker.tf_internals.pipelines import map_in_parallel

NAME = "parallel calls"


def proposals(pipeline: Any, request: Request) -> Iterator[Change | Left]:
    """One change for each map that has fewer calls at a time than it could."""
    for stage in stages.below(pipeline):
        if stages.kind(stage) not in ("Map", "ParallelMap"):
            continue
        calls = stages.constant(argument(stage, "num_parallel_calls", None))
        if calls is not None and (calls == tf.data.AUTOTUNE or calls >= (os.cpu_count() or 1)):
            continue
        why = effects.of(map_function(stage)).why_not_pure
        if why:
            # Left as it is: nothing that runs one at a time now may depend on it.
            yield Left(NAME, stages.described(stage), why)
            continue
        yield Change(NAME, stages.described(stage), replaced(pipeline, stage, _parallel(stage)))


def _parallel(stage: Any) -> Any:
    source = stages.inputs(stage)
    if stages.kind(stage) == "ParallelMap":
        return rebuilt(stage, source, num_parallel_calls=tf.data.AUTOTUNE)
    return map_in_parallel(source[0], map_function(stage), argument(stage, "preserve_cardinality"))
