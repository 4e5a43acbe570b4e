"""TFRecord files of `tf.train.Example`: parsed by the batch, with a spec that is inferred from the first records."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from stoker.data import cache as caches
from stoker.data import paths as found
from stoker.data.columns import nearest
from stoker.data.order import Order
from stoker.data.permutation import permute
from stoker.data.record_checks import TYPES, explain_misfit
from stoker.data.splits import check_sizes, finished
from stoker.data.store import Store, Writer
from stoker.errors import ArgumentError
from stoker.tf_internals import datasets, pipelines

_SAMPLE = 100
# One large read is far cheaper than many small ones, and than many files at a time.
_BUFFER = 8 << 20
_SHUFFLED = 16_384
# Records that are parsed at a time when they are counted.
_PARSED = 512


def tfrecord(
    paths: found.Paths,
    features: dict[str, Any] | None = None,
    label: str | None = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    *,
    shard: tuple[int, int] = (0, 1),
    drop_remainder: bool = False,
    cache: str | os.PathLike[str] | bool | None = None,
) -> Any:
    """Examples of TFRecord files, in batches of `({name: tensor}, label)`.

    Args:
        paths: files, globs or folders; gzip is recognised.
        features: the spec, as `tf.io.parse_example` takes it; None infers it from the first records: `ds.spec` is what
            was found. A feature of one length is dense, of several lengths ragged.
        label: the feature to predict.
        shuffle: the files are put in a new order each epoch, and the records of all of them shuffled through a buffer
            of 16,384: records have no fixed place, so this is no full shuffle.
        cache: where the number of records is remembered.

    The other arguments are those of `csv`. `shard` takes every `count`-th record.

    Raises:
        ArgumentError: a file is damaged, or no record is a `tf.train.Example`.
    """
    files = found.files(paths, found.RECORDS)
    kinds = {_compression(path) for path in files}
    if len(kinds) > 1:
        raise ArgumentError(f"some of the {len(files)} files are gzip and some are not: give one kind")
    compression = kinds.pop()
    spec = features if features is not None else _inferred(files[0], compression)
    if label is not None:
        nearest(list(spec), label, "label")
    rows = _counted(files, compression, spec, features is not None, cache)
    batch_size, seed, shard = check_sizes(batch_size, seed, shard)
    order = Order(rows, batch_size, bool(shuffle), seed, shard=shard, drop_remainder=bool(drop_remainder))
    if order.steps == 0:
        raise ArgumentError(f"{files[0]}: nothing is left of {rows:,} records")
    dataset = order.passes(_epoch(files, compression, order))
    dataset = dataset.map(_parser(spec, label), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    dataset.spec = spec
    return finished([dataset], [order], None)


def _epoch(files: list[Path], compression: str, order: Order) -> Callable[[Any], Any]:
    def batches(key: Any) -> Any:
        names = tf.constant([str(path) for path in files])
        if order.shuffle:
            tables = order.tables("files", key, len(files))
            names = tf.gather(names, permute(tf.range(len(files), dtype=tf.int64), tables, len(files)))
        records = tf.data.TFRecordDataset(names, compression, _BUFFER)
        if order.shuffle:
            records = _shuffled(records, order.words("records", key))
        if order.shard[1] > 1:
            records = records.shard(order.shard[1], order.shard[0])
        return records.batch(order.batch_size, order.drop_remainder)

    return batches


def _shuffled(records: Any, words: Any) -> Any:
    """`records.shuffle`, which takes no seed that is known only in the graph, and minds the global one."""
    spec = records.element_spec
    variant = tf.raw_ops.ShuffleDataset(
        input_dataset=datasets.variant(records),
        buffer_size=tf.constant(_SHUFFLED, tf.int64),
        seed=words[0],
        seed2=words[1],
        output_types=[spec.dtype],
        output_shapes=[spec.shape],
        reshuffle_each_iteration=False,
    )
    return pipelines.from_variant(variant, spec)


def _parser(spec: dict[str, Any], label: str | None) -> Callable[[Any], Any]:
    def parse(records: Any) -> Any:
        values = tf.io.parse_example(records, spec)
        return values if label is None else (values, values.pop(label))

    return parse


def _compression(path: Path) -> str:
    with path.open("rb") as file:
        return "GZIP" if file.read(2) == b"\x1f\x8b" else ""


def _inferred(path: Path, compression: str) -> dict[str, Any]:
    """The spec that the first records fit.

    Raises:
        ArgumentError: they are no examples, or a feature changes its type.
    """
    lengths: dict[str, set[int]] = {}
    types: dict[str, Any] = {}
    count = 0
    try:
        for record in tf.data.TFRecordDataset(str(path), compression).take(_SAMPLE):
            example = tf.train.Example.FromString(record.numpy())
            count += 1
            for name, feature in example.features.feature.items():
                _note(f"{path}, record {count:,}", name, feature, types, lengths)
            if not example.features.feature:
                raise ArgumentError(f"{path} holds records that are not tf.train.Example: give features=")
    except tf.errors.DataLossError:
        raise ArgumentError(_damaged(path)) from None
    except DecodeError:
        raise ArgumentError(f"{path} holds records that are not tf.train.Example") from None
    if not count:
        raise ArgumentError(f"{path} has no records")
    return {
        name: tf.io.FixedLenFeature([] if seen == {1} else [*seen], types[name])
        if len(seen) == 1
        else tf.io.RaggedFeature(types[name])
        for name, seen in sorted(lengths.items())
        if name in types
    }


def _note(where: str, name: str, feature: Any, types: dict[str, Any], lengths: dict[str, set[int]]) -> None:
    kind = feature.WhichOneof("kind")
    if kind is None:
        lengths.setdefault(name, set()).add(0)
        return
    dtype = TYPES[kind]
    if types.setdefault(name, dtype) != dtype:
        raise ArgumentError(
            f"{where}: feature {name} is {dtype.name}, but {types[name].name} in the records before: "
            "write all records with one type"
        )
    lengths.setdefault(name, set()).add(len(getattr(feature, kind).value))


def _counted(files: list[Path], compression: str, spec: dict[str, Any], given: bool, where: Any) -> int:
    """The number of records, by a pass that finds damage and records that do not fit the spec; remembered."""

    def parse(records: Any) -> Any:
        return tf.size(records, tf.int64), tf.io.parse_example(records, spec)

    def count(fresh: Callable[[], Writer]) -> Store:
        counts = []
        for path in files:
            batches = tf.data.TFRecordDataset(str(path), compression, _BUFFER).batch(_PARSED)
            parsed = batches.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
            try:
                counts.append(int(parsed.reduce(np.int64(0), lambda total, some: total + some[0])))
            except tf.errors.DataLossError:
                raise ArgumentError(_damaged(path)) from None
            except (tf.errors.InvalidArgumentError, UnicodeDecodeError) as error:
                # The latter where TensorFlow's message quotes bytes of a record.
                raise explain_misfit(path, compression, spec, given, error) from None
        if not sum(counts):
            raise ArgumentError(f"{files[0]} has no records")
        writer = fresh()
        writer.append("counts", np.array(counts, np.int64))
        return writer.finish({"rows": sum(counts)})

    state = [caches.state_of(path) for path in files]
    source = ["tfrecord", [str(path.resolve()) for path in files], str(sorted(spec.items()))]
    return caches.cached(count, source, state, where).rows


def _damaged(path: Path) -> str:
    return f"{path} is damaged or cut off: a record is not whole"
