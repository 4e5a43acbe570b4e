"""Pipelines on which a careless tuner would change a value, an order or an error.

Each is a function that makes the pipeline; beside it the changes that are expected. Whatever is not expected must have
been left alone, and what comes out must be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tests.data.tuning.judging import CACHE, GENERATOR, MAP, OUT

TRAPS: dict[str, tuple[Callable[[Path], Any], set[str]]] = {}
ROWS = 101
Build = Callable[[Path], Any]


def trap(*expected: str) -> Callable[[Build], Build]:
    def kept(build: Build) -> Build:
        TRAPS[build.__name__] = (build, set(expected))
        return build

    return kept


def rows(*shape: int) -> Any:
    values: Any = np.arange(ROWS * int(np.prod(shape)), dtype=np.float32).reshape(ROWS, *shape)
    return tf.data.Dataset.from_tensor_slices(values / 7 - 30)


def numbers() -> Any:
    return tf.data.Dataset.range(ROWS)


# ---- moved behind batch


@trap(MAP, CACHE)
def element_wise(tmp: Path) -> Any:
    return rows(3).map(lambda x: tf.sqrt(tf.abs(x)) / 255.0).batch(8)


@trap(MAP)
def shuffled_after_the_map(tmp: Path) -> Any:
    return rows(3).map(lambda x: x * 2).shuffle(40, seed=3).batch(8)


@trap(MAP)
def shuffled_without_a_seed(tmp: Path) -> Any:
    return rows().map(lambda x: x * 2).shuffle(40).batch(8)


@trap(MAP)
def shuffled_once_for_all_epochs(tmp: Path) -> Any:
    return rows().map(lambda x: x + 1).shuffle(40, seed=3, reshuffle_each_iteration=False).repeat(2).batch(8)


@trap(MAP)
def two_maps_with_stages_between(tmp: Path) -> Any:
    return (
        numbers()
        .map(lambda n: n * 3)
        .skip(2)
        .shuffle(30, seed=1)
        .map(lambda n: (n, tf.cast(n, tf.float32) / 3))
        .repeat(2)
        .shard(2, 1)
        .take(60)
        .batch(7, drop_remainder=True)
    )


@trap(MAP, CACHE)
def scalars_and_vectors_broadcast(tmp: Path) -> Any:
    both = tf.data.Dataset.zip((rows(), rows(8)))
    return both.map(lambda a, b: a * b + tf.range(8.0)).batch(8)


@trap(MAP, CACHE)
def a_constant_of_higher_rank(tmp: Path) -> Any:
    return rows(3).map(lambda x: x + tf.ones([2, 3])).batch(8)


@trap(MAP, CACHE)
def axes_from_the_left(tmp: Path) -> Any:
    return rows(2, 3).map(lambda x: tf.concat([tf.transpose(x), tf.transpose(x)], 0)[1:, ::-1]).batch(8)


@trap(MAP, CACHE)
def reshaped(tmp: Path) -> Any:
    return rows(2, 6).map(lambda x: tf.reshape(x, [3, -1])).map(lambda x: tf.squeeze(x[tf.newaxis])).batch(8)


@trap(MAP, CACHE)
def its_own_shape(tmp: Path) -> Any:
    return rows(2, 6).map(lambda x: x * tf.cast(tf.shape(x)[0] + tf.size(x), tf.float32)).batch(8)


@trap(MAP, CACHE)
def an_output_that_is_constant(tmp: Path) -> Any:
    return rows(2).map(lambda x: {"x": x, "weight": tf.constant([1.0, 2.0, 3.0]), "name": "a"}).batch(8)


@trap(MAP, CACHE)
def a_gathered_table(tmp: Path) -> Any:
    table = tf.constant(np.arange(500, dtype=np.float32).reshape(100, 5))
    return numbers().map(lambda n: (tf.gather(table, n % 100), tf.one_hot(n % 7, 7, axis=0))).batch(8)


@trap(MAP, CACHE)
def gathered_within_the_element(tmp: Path) -> Any:
    both = tf.data.Dataset.zip((rows(6, 2), numbers()))
    return both.map(lambda x, n: (tf.gather(x, [n % 6, 0]), tf.gather(x, [1, 0], axis=1))).batch(8)


@trap(MAP, CACHE)
def a_nested_function(tmp: Path) -> Any:
    @tf.function
    def inner(x: Any) -> Any:
        return tf.stack([x, x * 2], axis=0)

    @tf.function
    def outer(x: Any) -> Any:
        return inner(x) - 1.0

    return rows(3).map(outer).batch(8)


@trap(MAP, CACHE)
def lines_of_a_file(tmp: Path) -> Any:
    (tmp / "t.csv").write_text("".join(f"{i},{i / 3},name {i}\n" for i in range(ROWS)))
    lines = tf.data.TextLineDataset(str(tmp / "t.csv")).skip(1)
    return lines.map(lambda line: tf.io.decode_csv(line, [0, 0.0, ""])).batch(8)


@trap(MAP, CACHE)
def parsed_records(tmp: Path) -> Any:
    path = str(tmp / "t.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(ROWS):
            value = tf.train.Feature(float_list=tf.train.FloatList(value=[i, i / 3]))
            writer.write(
                tf.train.Example(features=tf.train.Features(feature={"x": value})).SerializeToString()
            )
    spec = {"x": tf.io.FixedLenFeature([2], tf.float32)}
    return tf.data.TFRecordDataset(path).map(lambda r: tf.io.parse_single_example(r, spec)).batch(8)


@trap(MAP, CACHE)
def a_table_filled_once(tmp: Path) -> Any:
    words = tf.constant(["a", "b", "c"])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(words, tf.range(3)), -1)
    chosen = tf.data.Dataset.from_tensor_slices(np.array(["a", "c", "?"] * 33))
    return chosen.map(lambda w: table.lookup(tf.strings.lower(w))).batch(8)


@trap(MAP, CACHE)
def not_a_number(tmp: Path) -> Any:
    odd = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 1e-45, 3e38], np.float32)
    slices = tf.data.Dataset.from_tensor_slices(np.tile(odd, (20, 3)))
    return slices.map(lambda x: tf.sqrt(tf.where(x > 1.0, x, -x)) * 0.5 - x).batch(6)


@trap(CACHE)
def the_larger_of_two_zeros(tmp: Path) -> Any:
    odd = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 1e-45, 3e38], np.float32)
    slices = tf.data.Dataset.from_tensor_slices(np.tile(odd, (20, 3)))
    return slices.map(lambda x: tf.maximum(tf.minimum(x, 1.0), -0.0)).batch(6)


@trap(MAP, CACHE)
def one_row_in_all(tmp: Path) -> Any:
    return rows(2).take(1).map(lambda x: x + 1).batch(8)


@trap(MAP, CACHE)
def no_rows_at_all(tmp: Path) -> Any:
    return rows(2).take(0).map(lambda x: x + 1).batch(8)


# ---- an error in the middle


@trap(MAP)
def an_error_in_the_middle_of_a_batch(tmp: Path) -> Any:
    words = tf.data.Dataset.from_tensor_slices([str(i) if i != 37 else "x" for i in range(ROWS)])
    return words.map(tf.strings.to_number).batch(8)


@trap(GENERATOR)
def an_error_in_a_generator(tmp: Path) -> Any:
    def examples() -> Iterator[int]:
        yield from range(37)
        raise ValueError("the 38th")

    return tf.data.Dataset.from_generator(examples, output_signature=tf.TensorSpec([], tf.int64)).batch(8)


@trap(GENERATOR)
def a_row_of_another_shape(tmp: Path) -> Any:
    def examples() -> Iterator[Any]:
        for i in range(60):
            yield np.zeros(3 if i != 50 else 4, np.float32)

    signature = tf.TensorSpec([3], tf.float32)
    return tf.data.Dataset.from_generator(examples, output_signature=signature).shuffle(4, seed=1).batch(8)


@trap()
def ignored_errors(tmp: Path) -> Any:
    words = tf.data.Dataset.from_tensor_slices(["1", "x", "3"])
    return words.map(tf.strings.to_number).ignore_errors().batch(2)


# ---- left where it is


@trap(CACHE)
def rounded_in_the_last_place(tmp: Path) -> Any:
    return rows(37).map(lambda x: tf.math.log1p(tf.abs(x))).batch(8)


@trap(CACHE)
def a_sum_of_floats(tmp: Path) -> Any:
    return rows(37).map(tf.reduce_sum).batch(8)


@trap(CACHE)
def a_product_of_matrices(tmp: Path) -> Any:
    weights = tf.constant(np.random.default_rng(1).normal(size=(5, 5)), tf.float32)
    return rows(4, 5).map(lambda x: x @ weights).batch(8)


@trap()
def random_by_a_global_seed(tmp: Path) -> Any:
    return rows(3).map(lambda x: x + tf.random.uniform([3])).batch(8)


@trap()
def random_by_its_own_seed(tmp: Path) -> Any:
    return rows(3).map(lambda x: x + tf.random.uniform([3], seed=5)).batch(8)


@trap(CACHE)
def stateless_random_by_element(tmp: Path) -> Any:
    return numbers().map(lambda n: tf.random.stateless_uniform([3], [n, 0])).batch(8)


@trap(MAP, CACHE)
def stateless_random_for_all(tmp: Path) -> Any:
    return rows(3).map(lambda x: x + tf.random.stateless_uniform([3], [1, 2])).batch(8)


@trap()
def a_table_that_changes(tmp: Path) -> Any:
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1)
    table.insert(tf.range(50, dtype=tf.int64), tf.range(50, dtype=tf.int64) * 2)
    kept = numbers().map(table.lookup).batch(8)
    kept.table = table
    return kept


@trap()
def a_variable(tmp: Path) -> Any:
    factor = tf.Variable(3, dtype=tf.int64)
    kept = numbers().map(lambda n: n * factor).batch(8)
    kept.factor = factor
    return kept


@trap()
def python_in_the_map(tmp: Path) -> Any:
    def double(n: Any) -> Any:
        return n * 2

    return numbers().map(lambda n: tf.ensure_shape(tf.numpy_function(double, [n], tf.int64), [])).batch(8)


@trap(CACHE)
def rows_of_different_lengths(tmp: Path) -> Any:
    return (
        numbers().map(lambda n: tf.range(n % 5)).map(lambda x: tf.reduce_max(tf.concat([x, [0]], 0))).batch(8)
    )


@trap(CACHE)
def ragged(tmp: Path) -> Any:
    values = tf.ragged.constant([[[1.0] * (i % 4), [2.0]] for i in range(ROWS)])
    return tf.data.Dataset.from_tensor_slices(values).map(lambda x: x * 2).batch(8)


@trap()
def batched_as_ragged(tmp: Path) -> Any:
    return numbers().map(lambda n: tf.range(n % 4)).ragged_batch(8)


@trap(CACHE)
def sparse(tmp: Path) -> Any:
    values = tf.sparse.from_dense(tf.eye(20))
    return tf.data.Dataset.from_tensor_slices(values).map(lambda x: tf.sparse.to_dense(x) * 2).batch(8)


@trap(CACHE)
def padded(tmp: Path) -> Any:
    return numbers().map(lambda n: tf.range(n % 5)).padded_batch(8, padded_shapes=[None])


@trap(CACHE)
def filtered_by_the_mapped_value(tmp: Path) -> Any:
    return numbers().map(lambda n: n * 3).filter(lambda n: n % 2 == 0).batch(8)


@trap(CACHE)
def a_branch_for_each_element(tmp: Path) -> Any:
    return numbers().map(lambda n: tf.cond(n > 5, lambda: n * 2, lambda: n)).batch(8)


@trap()
def behind_a_cache_of_its_own(tmp: Path) -> Any:
    return rows(3).map(lambda x: x + 1).cache().shuffle(40, seed=2).batch(8)


@trap(CACHE)
def counted_before_it_is_batched(tmp: Path) -> Any:
    return rows(3).map(lambda x: x + 1).enumerate().filter(lambda i, x: i > 3).batch(8)


@trap(MAP)
def zipped(tmp: Path) -> Any:
    left = rows(3).map(lambda x: x + 1).shuffle(40, seed=2).batch(8)
    return tf.data.Dataset.zip((left, numbers().batch(8)))


@trap()
def the_same_pipeline_twice(tmp: Path) -> Any:
    shuffled = numbers().shuffle(40, seed=2)
    return tf.data.Dataset.zip((shuffled, shuffled)).batch(8)


@trap(CACHE)
def interleaved(tmp: Path) -> Any:
    return (
        numbers().interleave(lambda n: tf.data.Dataset.range(n % 6), cycle_length=3, block_length=2).batch(8)
    )


@trap(OUT, CACHE)
def a_map_inside_an_interleave(tmp: Path) -> Any:
    def read(n: Any) -> Any:
        return (
            tf.data.Dataset.range(n % 6).map(lambda i: i * 2).map(lambda i: (i, tf.cast(i, tf.float32) / 3))
        )

    return numbers().interleave(read, cycle_length=3, block_length=2, num_parallel_calls=2).batch(8)


@trap(CACHE)
def a_map_inside_that_knows_where_it_is(tmp: Path) -> Any:
    return (
        numbers()
        .interleave(lambda n: tf.data.Dataset.range(n % 6).map(lambda i: i * n), cycle_length=3)
        .batch(8)
    )


@trap(OUT)
def lines_of_many_files(tmp: Path) -> Any:
    for number in range(4):
        (tmp / f"{number}.csv").write_text("".join(f"{i},{i / 3}\n" for i in range(20 + number)))

    def read(path: Any) -> Any:
        lines = tf.data.TextLineDataset(path)
        if tf.strings.regex_full_match(path, ".*2.csv"):
            lines = lines.skip(3)
        return lines.map(lambda line: tf.io.decode_csv(line, [0, 0.0]), num_parallel_calls=2)

    files = tf.data.Dataset.list_files(str(tmp / "*.csv"), shuffle=True, seed=3)
    return files.interleave(read, cycle_length=2).shuffle(10, seed=1).batch(8)


@trap()
def interleaved_at_random(tmp: Path) -> Any:
    return numbers().interleave(lambda n: tf.data.Dataset.range(n % 6).shuffle(6), cycle_length=3).batch(8)


@trap()
def sampled(tmp: Path) -> Any:
    return tf.data.Dataset.sample_from_datasets([numbers(), numbers().map(lambda n: n * 2)], seed=1).batch(8)


@trap()
def a_dataset_from_outside(tmp: Path) -> Any:
    other = numbers().shuffle(40, seed=1)
    return tf.data.Dataset.range(2).flat_map(lambda _: other).batch(8)


@trap(CACHE)
def concatenated(tmp: Path) -> Any:
    return rows().map(lambda x: x + 1).concatenate(rows().map(lambda x: x - 1)).batch(8)


@trap(CACHE)
def windows(tmp: Path) -> Any:
    return (
        numbers()
        .window(4, shift=2, drop_remainder=True)
        .flat_map(lambda w: w.batch(4))
        .map(lambda x: x * 2)
        .batch(3)
    )


@trap(MAP)
def for_ever(tmp: Path) -> Any:
    return rows().map(lambda x: x + 1).shuffle(40, seed=2).repeat().batch(8)


@trap(MAP)
def out_of_turn(tmp: Path) -> Any:
    kept = rows().map(lambda x: x + 1, num_parallel_calls=2, deterministic=False)
    return kept.shuffle(40, seed=2).batch(8, num_parallel_calls=2, deterministic=False)


# ---- generators


@trap(GENERATOR, MAP)
def a_generator_of_rows(tmp: Path) -> Any:
    def examples() -> Iterator[Any]:
        for i in range(ROWS):
            yield {"x": np.full(3, i, np.float32), "y": i, "name": f"row {i}"}

    signature = {
        "x": tf.TensorSpec([3], tf.float32),
        "y": tf.TensorSpec([], tf.int32),
        "name": tf.TensorSpec([], tf.string),
    }
    made = tf.data.Dataset.from_generator(examples, output_signature=signature)
    return made.map(lambda row: (row["x"] / 2, row["y"] + 1, row["name"])).batch(8)


@trap(GENERATOR)
def a_generator_that_differs_each_time(tmp: Path) -> Any:
    source = np.random.default_rng(1)

    def examples() -> Iterator[Any]:
        for _ in range(ROWS):
            yield source.normal(size=2).astype(np.float32)

    return tf.data.Dataset.from_generator(examples, output_signature=tf.TensorSpec([2], tf.float32)).batch(8)


@trap(GENERATOR)
def a_generator_with_arguments(tmp: Path) -> Any:
    def examples(first: Any, last: Any) -> Iterator[Any]:
        yield from range(first, last)

    signature = tf.TensorSpec([], tf.int64)
    return tf.data.Dataset.from_generator(examples, output_signature=signature, args=(5, 60)).batch(8)


@trap(GENERATOR)
def a_generator_of_lists_and_numpy_scalars(tmp: Path) -> Any:
    def examples() -> Iterator[Any]:
        for i in range(ROWS):
            yield ([i, i + 0.5], np.float64(i), np.int16(i % 9), bool(i % 2))

    signature = tuple(
        tf.TensorSpec(shape, dtype)
        for shape, dtype in (([2], tf.float32), ([], tf.float32), ([], tf.int64), ([], tf.bool))
    )
    return tf.data.Dataset.from_generator(examples, output_signature=signature).shuffle(9, seed=1).batch(8)


@trap()
def a_generator_of_unknown_shapes(tmp: Path) -> Any:
    def examples() -> Iterator[Any]:
        for i in range(ROWS):
            yield np.zeros(i % 3)

    signature = tf.TensorSpec([None], tf.float32)
    return tf.data.Dataset.from_generator(examples, output_signature=signature).padded_batch(8)


@trap()
def a_generator_of_ragged_rows(tmp: Path) -> Any:
    def examples() -> Iterator[Any]:
        for i in range(20):
            yield tf.ragged.constant([[1.0] * i, [2.0]])

    signature = tf.RaggedTensorSpec([2, None], tf.float32)
    return tf.data.Dataset.from_generator(examples, output_signature=signature).map(lambda x: x.to_tensor())


@trap()
def a_generator_that_can_be_read_once(tmp: Path) -> Any:
    once = iter(range(ROWS))
    return tf.data.Dataset.from_generator(lambda: once, output_signature=tf.TensorSpec([], tf.int64)).batch(8)


@trap()
def two_generators(tmp: Path) -> Any:
    def examples() -> Iterator[int]:
        yield from range(ROWS)

    one, other = (
        tf.data.Dataset.from_generator(examples, output_signature=tf.TensorSpec([], tf.int64)) for _ in "ab"
    )
    return tf.data.Dataset.zip((one, other)).batch(8)


@trap()
def a_generator_and_python_between(tmp: Path) -> Any:
    seen: list[int] = []

    def examples() -> Iterator[int]:
        for i in range(ROWS):
            yield i + len(seen)

    def note(n: Any) -> Any:
        seen.append(int(n))
        return n

    made = tf.data.Dataset.from_generator(examples, output_signature=tf.TensorSpec([], tf.int64))
    return made.map(lambda n: tf.ensure_shape(tf.numpy_function(note, [n], tf.int64), [])).batch(8)
