"""Prefetch: make the next elements while the consumer works on this one."""

from __future__ import annotations

import tensorflow as tf

from stoker.data.tuning import stages
from stoker.data.tuning.changes import PipelineChange, Proposals, TuningRequest
from stoker.tf_internals.types import Dataset

NAME = "prefetch"


def proposals(pipeline: Dataset, request: TuningRequest) -> Proposals:
    """Propose a prefetch at the end, if there is none."""
    last = pipeline
    while stages.kind(last) == "Options":
        (last,) = stages.inputs(last)
    if stages.kind(last) != "Prefetch":
        yield PipelineChange(NAME, stages.describe(last), pipeline.prefetch(tf.data.AUTOTUNE))
