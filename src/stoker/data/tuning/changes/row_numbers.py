"""Rows of arrays in memory chosen by number: whole batches are gathered, where rows were sliced and batched one by one.

`from_tensor_slices(x)` is the numbers of its rows, with row `n` of `x` in place of each number `n`. Stages that choose
or order rows without looking at them do the same to the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from stoker.data.tuning import stages
from stoker.data.tuning.changes import Change, Left, Request
from stoker.data.tuning.changes.map_behind_batch import BATCHES, BLIND
from stoker.data.tuning.rebuilding import comparable, rebuilt, replaced
from stoker.tf_internals.datasets import argument
from stoker.tf_internals.pipelines import nest

NAME = "batches gathered by row number"


def proposals(pipeline: Any, request: Request) -> Iterator[Change | Left]:
    """For every batch of rows that come from arrays, and were not changed on the way."""
    for batch in stages.below(pipeline):
        if stages.kind(batch) not in BATCHES:
            continue
        chain: list[Any] = []
        (at,) = stages.inputs(batch)
        while stages.kind(at) in BLIND:
            chain.insert(0, at)
            (at,) = stages.inputs(at)
        if stages.kind(at) == "TensorSlice" and stages.static(at):
            gathered = _gathered(batch, chain, at)
            pieces = comparable(batch), comparable(gathered)
            yield Change(NAME, stages.described(batch), replaced(pipeline, batch, gathered), pieces)


def _gathered(batch: Any, chain: list[Any], source: Any) -> Any:
    made = tf.data.Dataset.range(int(source.cardinality()))
    for stage in [*chain, batch]:
        made = rebuilt(stage, [made])
    return made.map(
        _rows(argument(source, "tensors"), batch.element_spec), num_parallel_calls=tf.data.AUTOTUNE
    )


def _rows(tensors: list[Any], wanted: Any) -> Callable[[Any], Any]:
    def rows_by_number(numbers: Any) -> Any:
        chosen = [tf.gather(tensor, numbers) for tensor in tensors]
        for tensor, spec in zip(chosen, nest.flatten(wanted), strict=True):
            tensor.set_shape(spec.shape)
        return nest.pack_sequence_as(wanted, chosen)

    kept: Callable[[Any], Any] = tf.autograph.experimental.do_not_convert(rows_by_number)
    return kept
