"""Pipelines made of other parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from stoker.tf_internals import datasets, pipelines

NUMBERS = tf.data.Dataset.range(6)


def values(dataset: Any) -> list[Any]:
    return [getattr(one, "tolist", lambda one=one: one)() for one in dataset.as_numpy_iterator()]


def test_nest_takes_a_list_for_a_tensor() -> None:
    assert pipelines.nest.flatten(([1, 2], 3)) == [[1, 2], 3]
    assert pipelines.nest.flatten_up_to((1, 2), ([1, 2], 3)) == [[1, 2], 3]
    assert pipelines.nest.pack_sequence_as((0, 0), [[1, 2], 3]) == ([1, 2], 3)
    assert pipelines.nest.map_structure(len, ([1, 2], "a")) == (2, 1)


def test_from_variant() -> None:
    again = pipelines.from_variant(datasets.variant(NUMBERS), NUMBERS.element_spec)
    assert values(again) == values(NUMBERS)


def test_from_tensors_restores_the_structure() -> None:
    specs = {"a": tf.TensorSpec([]), "b": (tf.TensorSpec([]),)}
    one, two = tf.constant(1.0), tf.constant(2.0)
    assert pipelines.from_tensors(specs, [one, two]) == {"a": one, "b": (two,)}


def test_convert_row_by_the_rules_of_python_functions() -> None:
    assert pipelines.convert_row([1, 2], np.dtype("float32")).tolist() == [1.0, 2.0]
    assert pipelines.convert_row("é", np.dtype(object))[()] == "é"
    with pytest.raises((TypeError, ValueError)):
        pipelines.convert_row("no number", np.dtype("int32"))


def test_map_in_parallel_traces_nothing() -> None:
    traces = []

    def double(x: Any) -> Any:
        traces.append(x)
        return 2 * x

    stage = NUMBERS.map(double)
    before = len(traces)
    parallel = pipelines.map_in_parallel(NUMBERS, datasets.map_function(stage), True)
    assert values(parallel) == [0, 2, 4, 6, 8, 10]
    assert len(traces) == before
    assert datasets.map_function(parallel) is datasets.map_function(stage)


def test_functions_reused_ends() -> None:
    stage = NUMBERS.map(lambda x: x + 1)
    with pipelines.functions_reused():
        again = type(stage)(NUMBERS, datasets.map_function(stage), preserve_cardinality=True)
    assert values(again) == values(stage)
    assert datasets.map_function(NUMBERS.map(lambda x: x)) is not datasets.map_function(stage)


def test_unbatch_dense() -> None:
    assert values(pipelines.unbatch_dense(NUMBERS.batch(4))) == values(NUMBERS)


def test_batch_size_of() -> None:
    assert pipelines.batch_size_of(NUMBERS.batch(4).prefetch(1)) == 4
    assert pipelines.batch_size_of(NUMBERS.batch(4).map(lambda x: x + 1)) == -1
    assert pipelines.batch_size_of(NUMBERS.map(lambda x: x + 1)) == -1


def test_shard_by_files_reads_every_other_file(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text(f"{number}\n", encoding="utf-8")
    files = [str(tmp_path / f"{number}.txt") for number in range(4)]
    lines = tf.data.Dataset.from_tensor_slices(files).interleave(tf.data.TextLineDataset).batch(1)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.FILE
    own = pipelines.shard_by_files(lines.with_options(options), 2, 1)
    assert values(own.unbatch()) == [b"1", b"3"]
    with pytest.raises(tf.errors.OpError):
        values(pipelines.shard_by_files(NUMBERS.with_options(options), 2, 1))


def test_scalar_source_is_a_dataset() -> None:
    made = pipelines.ScalarSource(
        tf.raw_ops.RangeDataset,
        start=tf.constant(1, tf.int64),
        stop=tf.constant(3, tf.int64),
        step=tf.constant(1, tf.int64),
    )
    assert values(made.repeat(2)) == [1, 2, 1, 2]


def test_shuffle_like_has_the_same_order() -> None:
    stage = NUMBERS.shuffle(6, seed=3, reshuffle_each_iteration=False)
    assert values(pipelines.shuffle_like(stage, NUMBERS)) == values(stage)
    other = pipelines.shuffle_like(stage, tf.data.Dataset.range(200), (5, 6))
    assert sorted(values(other)) == list(range(200))
    assert datasets.argument(other, "seed") == 5
