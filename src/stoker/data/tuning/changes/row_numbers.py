"""Gather whole batches by row number from arrays in memory, instead of slicing and batching rows one by one.

`from_tensor_slices(x)` gives row `n` of `x` for each row number `n`. Stages that choose or order rows without reading
them do the same to the numbers.
"""

from __future__ import annotations

import tensorflow as tf

from stoker.data.tuning import stages
from stoker.data.tuning.changes import PipelineChange, Proposals, TuningRequest
from stoker.data.tuning.changes.map_behind_batch import BATCHES, BLIND, fix_shapes
from stoker.data.tuning.rebuilding import make_comparable, rebuild, replace_stage
from stoker.tf_internals.datasets import argument
from stoker.tf_internals.pipelines import nest
from stoker.tf_internals.types import Dataset, Nest, Tensor

NAME = "batches gathered by row number"


def proposals(pipeline: Dataset, request: TuningRequest) -> Proposals:
    """Propose a change for every batch of rows that come unchanged from arrays."""
    for batch in stages.list_stages(pipeline):
        if stages.kind(batch) not in BATCHES:
            continue
        chain: list[Dataset] = []
        (at,) = stages.inputs(batch)
        while stages.kind(at) in BLIND:
            chain.insert(0, at)
            (at,) = stages.inputs(at)
        if stages.kind(at) == "TensorSlice" and stages.is_static(at):
            gathered = _gather_rows(batch, chain, at)
            pieces = make_comparable(batch), make_comparable(gathered)
            yield PipelineChange(
                NAME, stages.describe(batch), replace_stage(pipeline, batch, gathered), pieces
            )


def _gather_rows(batch: Dataset, chain: list[Dataset], source: Dataset) -> Dataset:
    made = tf.data.Dataset.range(int(source.cardinality()))
    for stage in [*chain, batch]:
        made = rebuild(stage, [made])
    tensors, wanted = argument(source, "tensors"), batch.element_spec

    def rows_by_number(numbers: Tensor) -> Nest:
        return nest.pack_sequence_as(wanted, [tf.gather(tensor, numbers) for tensor in tensors])

    return made.map(fix_shapes(rows_by_number, wanted), num_parallel_calls=tf.data.AUTOTUNE)
