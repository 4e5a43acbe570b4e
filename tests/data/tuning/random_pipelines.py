"""Random tf.data pipelines: a source, then transformations drawn at random, as far as each fits the elements it gets.

A pipeline is a list of `Piece`s, a name and a seed each, so that one that shows a fault can be made shorter: pieces are
left out one by one for as long as the fault stays (`shrink`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

Draw = random.Random
Source = Callable[[Draw], Any]
Transformation = Callable[[Any, Draw], Any]

SOURCES: dict[str, Source] = {}
TRANSFORMATIONS: dict[str, Transformation] = {}


class Piece(NamedTuple):
    """One step of a pipeline: which one, and the seed of what is drawn for it."""

    name: str
    seed: int


class DoesNotFit(Exception):
    """The elements are not of a kind that this transformation takes."""


def draw_pieces(seed: int, most: int = 9) -> list[Piece]:
    """A random pipeline."""
    draw = Draw(seed)
    names = list(TRANSFORMATIONS)
    pieces = [Piece(draw.choice(list(SOURCES)), draw.randrange(2**31))]
    pieces += [Piece(draw.choice(names), draw.randrange(2**31)) for _ in range(draw.randint(2, most))]
    # Most pipelines of real programs end in batches.
    if draw.random() < 0.6:
        pieces.append(Piece("batch", draw.randrange(2**31)))
    return pieces


def build(pieces: list[Piece]) -> Any:
    """The dataset; what does not fit is left out."""
    dataset = SOURCES[pieces[0].name](Draw(pieces[0].seed))
    for name, seed in pieces[1:]:
        try:
            dataset = TRANSFORMATIONS[name](dataset, Draw(seed))
        except DoesNotFit:
            continue
    return dataset


def shrink(pieces: list[Piece], fails: Callable[[list[Piece]], bool]) -> list[Piece]:
    """As few of these pieces as still fail."""
    smaller = True
    while smaller:
        smaller = False
        for index in range(len(pieces) - 1, 0, -1):
            fewer = pieces[:index] + pieces[index + 1 :]
            if fails(fewer):
                pieces, smaller = fewer, True
    return pieces


def read_elements(dataset: Any, most: int = 120) -> list[Any]:
    """The first elements as nested NumPy values; an error is the last of them, by its class."""
    found: list[Any] = []
    try:
        for element in dataset.take(most):
            found.append(tf.nest.map_structure(_as_value, element))
    except tf.errors.OpError as error:
        found.append(type(error).__name__)
    return found


def _as_value(leaf: Any) -> Any:
    if isinstance(leaf, tf.data.Dataset):
        return [tf.nest.map_structure(_as_value, element) for element in leaf.take(20)]
    if isinstance(leaf, tf.RaggedTensor):
        return leaf.to_list()
    array = np.asarray(leaf.numpy())
    return (leaf.dtype.name, array.shape, array.tolist() if leaf.dtype == tf.string else array.tobytes())


# ---- sources


def source(function: Source) -> Source:
    SOURCES[function.__name__] = function
    return function


def transformation(function: Transformation) -> Transformation:
    TRANSFORMATIONS[function.__name__] = function
    return function


def _rows(draw: Draw) -> int:
    return draw.choice([1, 2, 7, 32, 61, 100])


def _floats(draw: Draw, *shape: int) -> Any:
    values = np.random.default_rng(draw.randrange(2**31)).normal(size=shape) * 10
    return values.astype(draw.choice(["float32", "float64", "float16"]))


@source
def numbers(draw: Draw) -> Any:
    return tf.data.Dataset.range(_rows(draw), output_type=draw.choice([tf.int64, tf.int32]))


@source
def vectors(draw: Draw) -> Any:
    return tf.data.Dataset.from_tensor_slices(_floats(draw, _rows(draw), draw.choice([1, 3, 8])))


@source
def images(draw: Draw) -> Any:
    values = np.random.default_rng(draw.randrange(2**31)).integers(0, 256, (_rows(draw), 4, 5, 3))
    return tf.data.Dataset.from_tensor_slices(values.astype("uint8"))


@source
def pairs(draw: Draw) -> Any:
    rows = _rows(draw)
    return tf.data.Dataset.from_tensor_slices((_floats(draw, rows, 4), np.arange(rows) % 5))


@source
def dicts(draw: Draw) -> Any:
    rows = _rows(draw)
    texts = np.array([f"text {number % 7}, {number}" for number in range(rows)])
    return tf.data.Dataset.from_tensor_slices({"a": _floats(draw, rows), "b": np.arange(rows), "c": texts})


@source
def texts(draw: Draw) -> Any:
    lines = [f"{number},{number / 3:.3f},word{number % 4}" for number in range(_rows(draw))]
    return tf.data.Dataset.from_tensor_slices(lines)


@source
def one_tensor(draw: Draw) -> Any:
    return tf.data.Dataset.from_tensors(_floats(draw, 6)).repeat(draw.randint(1, 9))


@source
def from_python(draw: Draw) -> Any:
    rows = _rows(draw)

    def generate() -> Iterator[tuple[Any, int]]:
        for number in range(rows):
            yield np.full(3, number / 7, np.float32), number

    signature = (tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.int64))
    return tf.data.Dataset.from_generator(generate, output_signature=signature)


@source
def interleaved(draw: Draw) -> Any:
    cycle, block, scale = draw.randint(1, 4), draw.randint(1, 3), draw.randint(1, 9)
    return tf.data.Dataset.range(draw.randint(1, 6)).interleave(
        lambda n: tf.data.Dataset.range(n * 10, n * 10 + 7).map(lambda m: m * scale),
        cycle_length=cycle,
        block_length=block,
        num_parallel_calls=draw.choice([None, tf.data.AUTOTUNE]),
    )


# ---- what is done to each leaf of an element


def _leaves(dataset: Any) -> list[Any]:
    leaves: list[Any] = tf.nest.flatten(dataset.element_spec)
    if not all(type(leaf) is tf.TensorSpec for leaf in leaves):
        raise DoesNotFit
    return leaves


def _map_leaves(
    dataset: Any, draw: Draw, takes: Callable[[Any], bool], function: Callable[[Any], Any]
) -> Any:
    """The function on every leaf that it takes; at least one must be there."""
    if not any(takes(leaf) for leaf in _leaves(dataset)):
        raise DoesNotFit
    # TensorFlow may infer less of a shape than the spec says, so what a leaf is was decided beforehand.
    chosen = [takes(leaf) for leaf in _leaves(dataset)]

    def apply(*element: Any) -> Any:
        whole = element if len(element) > 1 else element[0]
        flat = tf.nest.flatten(whole)
        done = [function(leaf) if wanted else leaf for leaf, wanted in zip(flat, chosen, strict=True)]
        return tf.nest.pack_sequence_as(whole, done)

    parallel = draw.choice([None, None, 2, tf.data.AUTOTUNE])
    return dataset.map(apply, num_parallel_calls=parallel)


def _is_float(leaf: Any) -> bool:
    return bool(leaf.dtype.is_floating)


def _is_number(leaf: Any) -> bool:
    return bool(leaf.dtype.is_floating or leaf.dtype.is_integer)


def _is_wide(leaf: Any) -> bool:
    return leaf.dtype in (tf.float32, tf.float64, tf.int32, tf.int64)


def _has_rows(leaf: Any) -> bool:
    return bool(_is_number(leaf) and leaf.shape.rank and leaf.shape.is_fully_defined())


# What a leaf must be, and what becomes of it.
_MAPS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any]]] = {
    "add": (_is_wide, lambda x: x + tf.cast(5, x.dtype)),
    "multiply": (_is_wide, lambda x: x * tf.cast(3, x.dtype)),
    "divide": (_is_float, lambda x: x / tf.cast(7, x.dtype)),
    "floor_divide": (_is_wide, lambda x: x // tf.cast(3, x.dtype)),
    "negate": (_is_wide, lambda x: -x),
    "square_root": (_is_float, lambda x: tf.sqrt(tf.abs(x))),
    "exponential": (_is_float, lambda x: tf.exp(-tf.abs(x))),
    "hyperbolic_tangent": (_is_float, lambda x: tf.tanh(x)),
    "round": (_is_float, lambda x: tf.round(x)),
    "clip": (_is_wide, lambda x: tf.clip_by_value(x, tf.cast(1, x.dtype), tf.cast(5, x.dtype))),
    "to_float": (_is_number, lambda x: tf.cast(x, tf.float32)),
    "to_integer": (_is_float, lambda x: tf.cast(x, tf.int32)),
    "to_double": (_is_number, lambda x: tf.cast(x, tf.float64)),
    "choose": (_is_wide, lambda x: tf.where(x > tf.cast(2, x.dtype), x, tf.zeros_like(x))),
    "sum": (_has_rows, lambda x: tf.reduce_sum(x, axis=-1)),
    "mean": (lambda leaf: _is_float(leaf) and _has_rows(leaf), lambda x: tf.reduce_mean(x, axis=0)),
    "maximum": (_has_rows, lambda x: tf.reduce_max(x, axis=-1)),
    "flatten": (_has_rows, lambda x: tf.reshape(x, [-1])),
    "reverse": (_has_rows, lambda x: tf.reverse(x, [0])),
    "first": (_has_rows, lambda x: x[0]),
    "slice_rows": (_has_rows, lambda x: x[:2]),
    "transpose": (_has_rows, lambda x: tf.transpose(x)),
    "expand": (_is_number, lambda x: tf.expand_dims(x, -1)),
    "stack_twice": (_is_number, lambda x: tf.stack([x, x + tf.cast(1, x.dtype)])),
    "concatenate_values": (_has_rows, lambda x: tf.concat([x, x], 0)),
    "one_hot": (
        lambda leaf: leaf.dtype in (tf.int32, tf.int64) and leaf.shape.rank == 0,
        lambda x: tf.one_hot(x, 5),
    ),
    "look_up": (
        lambda leaf: leaf.dtype in (tf.int32, tf.int64),
        lambda x: tf.gather(tf.range(11) * 3, x % tf.cast(11, x.dtype)),
    ),
    "normalise": (
        lambda leaf: _is_float(leaf) and _has_rows(leaf),
        lambda x: x / (tf.norm(x) + tf.cast(1, x.dtype)),
    ),
    "random_noise": (
        lambda leaf: leaf.dtype == tf.float32,
        lambda x: x + tf.random.stateless_uniform(tf.shape(x), [1, 2]),
    ),
    "branch": (
        lambda leaf: _is_wide(leaf) and leaf.shape.rank == 0,
        lambda x: tf.cond(x > tf.cast(3, x.dtype), lambda: x * tf.cast(2, x.dtype), lambda: x),
    ),
    "text_length": (lambda leaf: leaf.dtype == tf.string, lambda x: tf.strings.length(x)),
    "text_join": (lambda leaf: leaf.dtype == tf.string, lambda x: tf.strings.join([x, "!"])),
    "text_upper": (lambda leaf: leaf.dtype == tf.string, lambda x: tf.strings.upper(x)),
    "text_hash": (
        lambda leaf: leaf.dtype == tf.string,
        lambda x: tf.strings.to_hash_bucket_fast(x, 13),
    ),
    "text_of_number": (
        lambda leaf: leaf.dtype in (tf.int32, tf.int64),
        lambda x: tf.strings.as_string(x),
    ),
    "python_code": (
        lambda leaf: leaf.dtype == tf.float32 and leaf.shape.is_fully_defined(),
        lambda x: tf.ensure_shape(
            tf.numpy_function(lambda array: array + np.float32(1), [x], tf.float32), x.shape
        ),
    ),
}
for _name, (_takes, _function) in _MAPS.items():
    TRANSFORMATIONS[_name] = partial(_map_leaves, takes=_takes, function=_function)


# ---- what is done to whole elements, and to the pipeline


@transformation
def decode_line(dataset: Any, draw: Draw) -> Any:
    spec = dataset.element_spec
    if not isinstance(spec, tf.TensorSpec) or spec.dtype != tf.string or spec.shape.rank != 0:
        raise DoesNotFit
    return dataset.map(lambda line: tuple(tf.io.decode_csv(line, [0, 0.0, ""])))


@transformation
def to_pair(dataset: Any, draw: Draw) -> Any:
    if not isinstance(dataset.element_spec, tf.TensorSpec):
        raise DoesNotFit
    return dataset.map(lambda x: (x, x))


@transformation
def to_dict(dataset: Any, draw: Draw) -> Any:
    if not isinstance(dataset.element_spec, tuple):
        raise DoesNotFit
    return dataset.map(lambda *parts: {str(number): part for number, part in enumerate(parts)})


@transformation
def keep_first(dataset: Any, draw: Draw) -> Any:
    if not isinstance(dataset.element_spec, tuple | dict):
        raise DoesNotFit
    return dataset.map(lambda *parts: tf.nest.flatten(parts)[0])


@transformation
def keep_some(dataset: Any, draw: Draw) -> Any:
    divisor = draw.randint(2, 4)
    counted = dataset.enumerate().filter(lambda number, _: number % divisor != 0)
    return counted.map(lambda _, element: element)


@transformation
def keep_small(dataset: Any, draw: Draw) -> Any:
    spec = dataset.element_spec
    if not isinstance(spec, tf.TensorSpec) or not _is_wide(spec) or spec.shape.rank != 0:
        raise DoesNotFit
    return dataset.filter(lambda x: x < tf.cast(40, x.dtype))


@transformation
def take_while(dataset: Any, draw: Draw) -> Any:
    most = draw.randint(5, 80)
    counted = dataset.enumerate().take_while(lambda number, _: number < most)
    return counted.map(lambda _, element: element)


@transformation
def shuffle(dataset: Any, draw: Draw) -> Any:
    return dataset.shuffle(
        draw.choice([2, 10, 200]),
        seed=draw.randrange(99),
        reshuffle_each_iteration=draw.choice([True, False]),
    )


@transformation
def batch(dataset: Any, draw: Draw) -> Any:
    for leaf in _leaves(dataset):
        if not leaf.shape.is_fully_defined():
            raise DoesNotFit
    return dataset.batch(draw.choice([1, 2, 7, 16]), drop_remainder=draw.choice([True, False]))


@transformation
def padded_batch(dataset: Any, draw: Draw) -> Any:
    if any(leaf.shape.rank is None for leaf in _leaves(dataset)):
        raise DoesNotFit
    return dataset.padded_batch(draw.choice([2, 5]))


@transformation
def unbatch(dataset: Any, draw: Draw) -> Any:
    if any(not leaf.shape.rank for leaf in _leaves(dataset)):
        raise DoesNotFit
    if len({leaf.shape[0] for leaf in _leaves(dataset)}) > 1:
        raise DoesNotFit
    return dataset.unbatch()


@transformation
def rebatch(dataset: Any, draw: Draw) -> Any:
    if any(not leaf.shape.rank for leaf in _leaves(dataset)):
        raise DoesNotFit
    if len({leaf.shape[0] for leaf in _leaves(dataset)}) > 1:
        raise DoesNotFit
    return dataset.rebatch(draw.choice([1, 3, 8]), drop_remainder=draw.choice([True, False]))


@transformation
def windows(dataset: Any, draw: Draw) -> Any:
    spec = dataset.element_spec
    if not isinstance(spec, tf.TensorSpec) or not spec.shape.is_fully_defined():
        raise DoesNotFit
    size = draw.randint(2, 5)
    return dataset.window(size, shift=draw.randint(1, 3), drop_remainder=True).flat_map(
        lambda w: w.batch(size)
    )


@transformation
def twice_each(dataset: Any, draw: Draw) -> Any:
    return dataset.flat_map(lambda *x: tf.data.Dataset.from_tensors(x if len(x) > 1 else x[0]).repeat(2))


@transformation
def interleave(dataset: Any, draw: Draw) -> Any:
    cycle = draw.randint(1, 3)
    return dataset.interleave(
        lambda *x: tf.data.Dataset.from_tensors(x if len(x) > 1 else x[0]).repeat(3), cycle_length=cycle
    )


@transformation
def running_count(dataset: Any, draw: Draw) -> Any:
    return dataset.scan(tf.constant(0), lambda state, *x: (state + 1, (state, *x)))


TRANSFORMATIONS.update(
    {
        "repeat": lambda dataset, draw: dataset.repeat(draw.randint(1, 3)),
        "take": lambda dataset, draw: dataset.take(draw.randint(0, 90)),
        "skip": lambda dataset, draw: dataset.skip(draw.randint(0, 9)),
        "shard": lambda dataset, draw: dataset.shard(3, draw.randint(0, 2)),
        "cache": lambda dataset, draw: dataset.cache(),
        "prefetch": lambda dataset, draw: dataset.prefetch(draw.choice([1, 4, tf.data.AUTOTUNE])),
        "enumerate": lambda dataset, draw: dataset.enumerate(start=draw.randint(0, 3)),
        "concatenate": lambda dataset, draw: dataset.concatenate(dataset.take(5)),
        "zip_with_numbers": lambda dataset, draw: tf.data.Dataset.zip((dataset, tf.data.Dataset.range(50))),
        "zip_with_itself": lambda dataset, draw: tf.data.Dataset.zip((dataset, dataset)),
        "options": lambda dataset, draw: dataset.with_options(_options(draw)),
    }
)


def _options(draw: Draw) -> Any:
    options = tf.data.Options()
    options.deterministic = True
    options.experimental_optimization.map_parallelization = draw.choice([True, False])
    return options
