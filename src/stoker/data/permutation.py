"""Uniform permutations of any number of items, made in the graph from a key of 64 bits and a counter of 128.

Up to 65,536 items are permuted by sorting a random number for each. More items are permuted place by place, by a
Feistel network: a place is a pair (left, right), and each round adds a random function of one half to the other. The
functions are tables of random numbers, as long as the square root of the number of items: a megabyte serves a billion
rows.

Every iterator of a dataset prepares its functions again, at a cost that grows with the number of their operations. So
there are few operations, and raw ones.

TensorFlow's own `RandomIndexShuffle` is not used: on up to 65,536 items it takes 8 bits of each word of its seed, and
on 4^k + 1 items it is not a permutation.
"""

from __future__ import annotations

import math

import tensorflow as tf

from stoker.tf_internals.types import Tensor

# Up to this number, a list of all places is cheap: half a megabyte, sorted in six milliseconds.
LISTED = 1 << 16
_ROUNDS = 8
# Rows of a tensor that begin at a multiple of this many int32 need no copy.
_ALIGNED = 16


def make_tables(key: int, counter: Tensor, count: int) -> tuple[Tensor, ...]:
    """Return, in a graph, the random tables that `permute` needs for one permutation.

    Args:
        key: the key of Philox, the random generator.
        counter: where Philox begins, as two int64. Two permutations with the same key need counters far apart.
        count: the number of items.
    """
    if count <= LISTED:
        return (tf.math.top_k(_draw([count], key, counter), count).indices,)
    left, right = _sides(count)
    width = -(-max(left, right) // _ALIGNED) * _ALIGNED
    limits = tf.constant([[left], [right]] * (_ROUNDS // 2), tf.int64)
    functions = tf.cast(tf.math.floormod(_draw([_ROUNDS, width], key, counter), limits), tf.int32)
    return functions, _walk_back(functions, count)


def permute(places: Tensor, tables: tuple[Tensor, ...], count: int) -> Tensor:
    """Return, in a graph, where the permutation of `make_tables` puts these places."""
    if count <= LISTED:
        return tf.cast(tf.gather(tables[0], places), tf.int64)
    functions, instead = tables
    found = _encrypt(places, functions, count)
    beyond = found >= count
    return tf.where(beyond, tf.gather(instead, tf.where(beyond, found - count, 0)), found)


def _draw(shape: list[int], key: int, counter: Tensor) -> Tensor:
    """Return random int64."""
    return tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=shape,
        key=tf.constant([key], tf.uint64),
        counter=tf.bitcast(counter, tf.uint64),
        alg=tf.random.Algorithm.PHILOX.value,
        dtype=tf.int64,
    )


def _sides(count: int) -> tuple[int, int]:
    """Return the number of left and of right halves, which together give slightly more pairs than there are items."""
    left = math.isqrt(count - 1) + 1
    return left, -(-count // left)


def _encrypt(places: Tensor, functions: Tensor, count: int) -> Tensor:
    """Permute all pairs."""
    sides = _sides(count)
    halves = [tf.cast(places // sides[1], tf.int32), tf.cast(places % sides[1], tf.int32)]
    for number, function in enumerate(tf.unstack(functions, _ROUNDS)):
        changed, other = number % 2, 1 - number % 2
        halves[changed] = (halves[changed] + tf.gather(function, halves[other])) % sides[changed]
    return tf.cast(halves[0], tf.int64) * sides[1] + tf.cast(halves[1], tf.int64)


def _walk_back(functions: Tensor, count: int) -> Tensor:
    """Return, for each pair that stands for no item, the item that repeated permuting leads to.

    A place that is sent to such a pair takes that item instead, so that the items are permuted among themselves. Each
    step doubles how far each pair has advanced. Pairs that lead only to each other reach no item, but no place is sent
    to them.
    """
    left, right = _sides(count)
    beyond = left * right - count
    if not beyond:
        return tf.zeros([1], tf.int64)

    def step(found: Tensor) -> tuple[Tensor]:
        return (tf.where(found >= count, tf.gather(found, tf.maximum(found - count, 0)), found),)

    first = _encrypt(tf.range(count, left * right, dtype=tf.int64), functions, count)
    return tf.while_loop(
        lambda found: tf.reduce_any(found >= count), step, (first,), maximum_iterations=beyond.bit_length()
    )[0]
