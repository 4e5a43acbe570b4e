"""Many values in few sums: gradients, losses, logs and statistics of a step go over the network together.

A sum over the workers takes about a millisecond, however small it is, so that a step makes one. Large models are cut
into packs, which are on their way one behind the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf

from stoker.tf_internals.types import Tensor

# Packs of this size were the fastest for 16 MiB of gradients between processes of one machine.
PACK_BYTES = 4 * 1024 * 1024


def summed(values: Sequence[Tensor]) -> list[Tensor]:
    """On a replica: each value added up over all replicas; one collective, if all are small and of one type.

    Shapes must be known: all replicas have to send the same packs.
    """
    results: list[Tensor] = [None] * len(values)
    by_type: dict[tf.DType, list[int]] = {}
    for index, value in enumerate(values):
        by_type.setdefault(value.dtype, []).append(index)
    for indices in by_type.values():
        flat = tf.concat([tf.reshape(values[index], [-1]) for index in indices], 0)
        whole = tf.concat(_added(_cut(flat)), 0)
        sizes = [math.prod(values[index].shape) for index in indices]
        for index, part in zip(indices, tf.split(whole, sizes), strict=True):
            results[index] = tf.reshape(part, values[index].shape)
    return results


def _added(packs: list[Tensor]) -> list[Tensor]:
    # Left to itself TensorFlow makes one pack of them all again.
    options = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=1)
    replica = tf.distribute.get_replica_context()
    return list(replica.all_reduce(tf.distribute.ReduceOp.SUM, packs, options))


def _cut(flat: Tensor) -> list[Tensor]:
    size = int(flat.shape[0])
    most = PACK_BYTES // flat.dtype.size
    if size <= most:
        return [flat]
    return list(tf.split(flat, [min(most, size - start) for start in range(0, size, most)]))
