"""What the stages of a pipeline tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from stoker.tf_internals import datasets

NUMBERS = tf.data.Dataset.range(4)


def double(x: Any) -> Any:
    return 2 * x


def test_inputs_are_the_datasets_a_stage_was_made_of() -> None:
    both = tf.data.Dataset.zip((NUMBERS, NUMBERS.skip(1)))
    assert datasets.inputs(NUMBERS) == []
    assert datasets.inputs(both)[0] is NUMBERS
    assert len(datasets.inputs(both)) == 2


@pytest.mark.parametrize(
    "stage",
    [
        NUMBERS.map(double),
        NUMBERS.map(double, num_parallel_calls=2),
        NUMBERS.flat_map(lambda x: tf.data.Dataset.from_tensors(x)),
        NUMBERS.interleave(lambda x: tf.data.Dataset.from_tensors(x), num_parallel_calls=2),
        NUMBERS.filter(lambda x: x > 1),
    ],
    ids=lambda stage: type(stage).__name__,
)
def test_functions_of_a_stage(stage: Any) -> None:
    """`functions`, `map_function` and `python_function`."""
    (wrapper,) = datasets.functions(stage)
    assert wrapper is datasets.map_function(stage)
    assert len(wrapper.function.graph.inputs) == 1
    assert wrapper.function.captured_inputs == []
    assert tf.nest.flatten(wrapper.output_structure)
    assert callable(datasets.python_function(wrapper))
    assert datasets.map_function(NUMBERS) is None


@pytest.mark.parametrize(
    ("stage", "name", "value"),
    [
        (NUMBERS.batch(3, drop_remainder=True), "batch_size", 3),
        (NUMBERS.batch(3, drop_remainder=True), "drop_remainder", True),
        (NUMBERS.batch(3, num_parallel_calls=2, deterministic=True), "deterministic", "true"),
        (NUMBERS.padded_batch(3, padding_values=tf.constant(7, tf.int64)), "padding_values", 7),
        (NUMBERS.map(double, num_parallel_calls=2), "num_parallel_calls", 2),
        (NUMBERS.map(double, num_parallel_calls=2), "preserve_cardinality", True),
        (NUMBERS.shuffle(5, seed=1), "buffer_size", 5),
        (NUMBERS.shuffle(5, seed=1), "seed2", 1),
        (NUMBERS.shuffle(5, reshuffle_each_iteration=False), "reshuffle_each_iteration", False),
        (NUMBERS.prefetch(6), "buffer_size", 6),
        (NUMBERS.repeat(2), "count", 2),
        (NUMBERS.interleave(tf.data.Dataset.from_tensors, cycle_length=3), "cycle_length", 3),
        (NUMBERS.interleave(tf.data.Dataset.from_tensors, block_length=2), "block_length", 2),
        (tf.data.Dataset.from_tensor_slices([1, 2]), "tensors", [1, 2]),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_argument(stage: Any, name: str, value: Any) -> None:
    assert datasets.has_argument(stage, name)
    (found,) = tf.nest.flatten(datasets.argument(stage, name))
    plain = found.numpy() if isinstance(found, tf.Tensor) else found
    assert np.array_equal(plain, value)


@pytest.mark.parametrize("reader", [tf.data.TextLineDataset, tf.data.TFRecordDataset])
def test_argument_of_a_reader_is_a_dataset_of_names(reader: Any) -> None:
    names = datasets.argument(reader(["a", "b"]), "filenames")
    assert list(names.as_numpy_iterator()) == [b"a", b"b"]


def test_argument_that_was_not_kept() -> None:
    assert not datasets.has_argument(NUMBERS, "batch_size")
    assert datasets.argument(NUMBERS, "batch_size", 1) == 1
    with pytest.raises(AttributeError):
        datasets.argument(NUMBERS, "batch_size")


def test_argument_of_zip_has_its_structure() -> None:
    stage = tf.data.Dataset.zip({"a": NUMBERS, "b": NUMBERS})
    assert datasets.argument(stage, "datasets") == {"a": NUMBERS, "b": NUMBERS}


def test_generator_behind_the_closures_of_from_generator() -> None:
    def rows() -> Any:
        yield 1

    stage = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([], tf.int32))
    function = datasets.python_function(datasets.map_function(stage))
    assert "from_generator" in function.__qualname__

    def cells(function: Any) -> dict[str, Any]:
        return dict(
            zip(function.__code__.co_freevars, (c.cell_contents for c in function.__closure__), strict=True)
        )

    begin = cells(cells(function)["get_iterator_id_fn"])
    assert cells(function)["output_signature"] == stage.element_spec
    assert tuple(begin["args"]) == ()
    assert datasets.generator_behind(begin["generator_state"]) is rows


def test_graph_of_a_pipeline_has_its_operations() -> None:
    nodes = datasets.graph_of(NUMBERS.batch(2)).node
    assert {"RangeDataset", "BatchDatasetV2", "_Retval"} <= {node.op for node in nodes}


def test_variant_is_a_dataset_to_operations() -> None:
    size = tf.raw_ops.DatasetCardinality(input_dataset=datasets.variant(NUMBERS))
    assert int(size) == 4
    assert datasets.variant(tf.experimental.Optional.from_value(1)).dtype == tf.variant


def test_batch_spec() -> None:
    assert datasets.batch_spec(tf.TensorSpec([2], tf.int32)) == tf.TensorSpec([None, 2], tf.int32)
