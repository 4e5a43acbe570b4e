"""Read TFRecord files of `tf.train.Example`, parsed batch by batch with a spec inferred from the first records."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from stoker.data import cache as caches
from stoker.data import paths as found
from stoker.data.columns import check_known
from stoker.data.order import Order
from stoker.data.permutation import permute
from stoker.data.splits import check_sizes, make_datasets
from stoker.data.store import Store, Writer
from stoker.errors import ArgumentError
from stoker.storage import arriving, origin_of
from stoker.tf_internals import datasets, pipelines
from stoker.tf_internals.types import Dataset, DType, Nest, ProtoMessage, Tensor
from stoker.units import quantity

_SAMPLE = 100
# One large read is far cheaper than many small ones, or than reading many files at a time.
_BUFFER = 8 << 20
_SHUFFLED = 16_384
# The number of records that are parsed at a time for counting.
_PARSED = 512
_TYPES = {"bytes_list": tf.string, "float_list": tf.float32, "int64_list": tf.int64}
# The spec that `tf.io.parse_example` takes: a `tf.io.FixedLenFeature`, `tf.io.RaggedFeature` or another for each name.
Spec: TypeAlias = dict[str, tf.io.FixedLenFeature]


@found.parses_as_files_arrive
def tfrecord(
    paths: found.Paths,
    features: Spec | None = None,
    label: str | None = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    *,
    shard: tuple[int, int] = (0, 1),
    drop_remainder: bool = False,
    cache: caches.CachePlace = None,
    cache_bytes: int | None = None,
) -> Dataset:
    """Read examples of TFRecord files, in batches of `({name: tensor}, label)`.

    Args:
        paths: files, globs or folders; gzip is recognised.
        features: the spec that `tf.io.parse_example` takes; None infers it from the first records. `ds.spec` is the
            result. A feature of one length is dense, of several lengths ragged.
        label: the feature to predict.
        shuffle: shuffle the files, and their records through a buffer of 16,384, differently in each epoch. This is not
            a full shuffle: records have no fixed place in a file.
        cache: the directory that remembers the number of records.

    The other arguments are those of `csv`. `shard` takes every `count`-th record.

    Raises:
        ArgumentError: a file is damaged, or its records are not `tf.train.Example`.
    """
    files = found.files(paths, found.RECORDS, cache_bytes)
    compression = _compression(next(arriving(files)))
    spec = features if features is not None else _infer_spec(files[0], compression)
    if label is not None:
        check_known(list(spec), label, "label")
    rows = _count_records(files, compression, spec, features is not None, cache)
    # Check all files, as every epoch reads them with a single compression.
    if len({_compression(path) for path in arriving(files)}) > 1:
        raise _refuse_mixture(files)
    batch_size, seed, shard = check_sizes(batch_size, seed, shard)
    order = Order(rows, batch_size, bool(shuffle), seed, shard=shard, drop_remainder=bool(drop_remainder))
    if order.steps == 0:
        raise ArgumentError(
            f"{files[0]}: no batch can be made of {quantity(rows, 'record')}: use fewer shards or smaller batches"
        )
    dataset = order.passes(_epoch(files, compression, order))
    dataset = dataset.map(_parser(spec, label), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    dataset.spec = spec
    return make_datasets([order], lambda _: dataset, divisible=False)


def _epoch(files: list[Path], compression: str, order: Order) -> Callable[[Tensor], Dataset]:
    def batches(key: Tensor) -> Dataset:
        names = tf.constant([str(path) for path in files])
        if order.shuffle:
            tables = order.tables("files", key, len(files))
            names = tf.gather(names, permute(tf.range(len(files), dtype=tf.int64), tables, len(files)))
        records = tf.data.TFRecordDataset(names, compression, _BUFFER)
        if order.shuffle:
            records = _shuffle(records, order.words("records", key))
        if order.shard[1] > 1:
            records = records.shard(order.shard[1], order.shard[0])
        return records.batch(order.batch_size, order.drop_remainder)

    return batches


def _shuffle(records: Dataset, words: Tensor) -> Dataset:
    """Shuffle like `records.shuffle`, but with a seed that only the graph knows, independent of the global seed."""
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


def _parser(spec: Spec, label: str | None) -> Callable[[Tensor], Nest]:
    def parse(records: Tensor) -> Nest:
        values = tf.io.parse_example(records, spec)
        return values if label is None else (values, values.pop(label))

    return parse


def _compression(path: Path) -> str:
    with path.open("rb") as file:
        return "GZIP" if file.read(2) == b"\x1f\x8b" else ""


def _infer_spec(path: Path, compression: str) -> Spec:
    """Infer the spec that the first records fit.

    Raises:
        ArgumentError: the records are not examples, or a feature changes its type.
    """
    lengths: dict[str, set[int]] = {}
    types: dict[str, DType] = {}
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
        raise _damage_error(path) from None
    except DecodeError:
        raise ArgumentError(
            f"{path} holds records that are not tf.train.Example: write them as such"
        ) from None
    if not count:
        raise ArgumentError(f"{path} has no records")
    return {
        name: tf.io.FixedLenFeature([] if seen == {1} else [*seen], types[name])
        if len(seen) == 1
        else tf.io.RaggedFeature(types[name])
        for name, seen in sorted(lengths.items())
        if name in types
    }


def _note(
    where: str, name: str, feature: ProtoMessage, types: dict[str, DType], lengths: dict[str, set[int]]
) -> None:
    """Add the type and length of a feature to those seen so far."""
    kind = feature.WhichOneof("kind")
    if kind is None:
        lengths.setdefault(name, set()).add(0)
        return
    dtype = _TYPES[kind]
    if types.setdefault(name, dtype) != dtype:
        raise ArgumentError(
            f"{where}: feature {name} is {dtype.name}, but {types[name].name} in the records before: "
            "write all records with one type"
        )
    lengths.setdefault(name, set()).add(len(getattr(feature, kind).value))


def _count_records(
    files: list[Path], compression: str, spec: Spec, given: bool, where: caches.CachePlace
) -> int:
    """Return the number of records, cached. Counting finds damage, and records that do not fit the spec."""

    def parse(records: Tensor) -> Nest:
        return tf.size(records, tf.int64), tf.io.parse_example(records, spec)

    def count(fresh: Callable[[], Writer]) -> Store:
        counts = []
        for path in arriving(files):
            if _compression(path) != compression:
                raise _refuse_mixture(files)
            batches = tf.data.TFRecordDataset(str(path), compression, _BUFFER).batch(_PARSED)
            parsed = batches.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
            try:
                counts.append(int(parsed.reduce(np.int64(0), lambda total, some: total + some[0])))
            except tf.errors.DataLossError:
                raise _damage_error(path) from None
            except (tf.errors.InvalidArgumentError, UnicodeDecodeError) as error:
                # UnicodeDecodeError occurs if TensorFlow's message quotes bytes of a record.
                raise _explain_misfit(path, compression, spec, given, error) from None
        if not sum(counts):
            raise ArgumentError(f"{files[0]} has no records")
        writer = fresh()
        writer.append("counts", np.array(counts, np.int64))
        return writer.finish({"rows": sum(counts)})

    state = [caches.read_file_state(path) for path in files]
    source = ["tfrecord", [origin_of(path) for path in files], str(sorted(spec.items()))]
    return caches.load_or_make(count, source, state, where).rows


def _refuse_mixture(files: list[Path]) -> ArgumentError:
    return ArgumentError(f"some of the {len(files)} files are gzip and some are not: give files of one kind")


def _damage_error(path: Path) -> ArgumentError:
    return ArgumentError(
        f"{path} is damaged or cut off: a record is incomplete; create or copy the file again"
    )


def _explain_misfit(path: Path, compression: str, spec: Spec, given: bool, error: Exception) -> ArgumentError:
    """Return the error for a file that TensorFlow cannot parse with this spec; it names the first misfit record.

    Args:
        path: the file.
        compression: the file's compression, as `tf.data.TFRecordDataset` takes it.
        spec: the spec of the features.
        given: whether the caller gave the spec.
        error: TensorFlow's error.
    """
    for number, record in enumerate(tf.data.TFRecordDataset(str(path), compression), 1):
        try:
            features = tf.train.Example.FromString(record.numpy()).features.feature
        except DecodeError:
            return ArgumentError(f"{path}, record {number:,} is not a tf.train.Example")
        for name, wanted in spec.items():
            key = getattr(wanted, "value_key", None) or name
            why = _describe_misfit(
                features.get(key), wanted, "in features=" if given else "in the records before"
            )
            if why:
                return ArgumentError(f"{path}, record {number:,}: feature {key} {why}")
    return ArgumentError(f"{path}: {error.message if isinstance(error, tf.errors.OpError) else error}")


def _describe_misfit(feature: ProtoMessage | None, wanted: tf.io.FixedLenFeature, known: str) -> str:
    """Say why a feature does not fit its spec; empty if it fits."""
    kind = None if feature is None else feature.WhichOneof("kind")
    fixed = isinstance(wanted, tf.io.FixedLenFeature)
    if kind is None:
        gone = fixed and wanted.default_value is None
        return (
            f"is missing, but {wanted.dtype.name} {known}: give it a default with features=" if gone else ""
        )
    dtype = _TYPES[kind]
    if dtype != wanted.dtype:
        return f"is {dtype.name}, but {wanted.dtype.name} {known}: write all records with one type"
    count = len(getattr(feature, kind).value)
    length = math.prod(wanted.shape) if fixed else count
    if count == length or (count == 0 and wanted.default_value is not None):
        return ""
    return f"has {quantity(count, 'value')}, but {length:,} {known}: give it as tf.io.RaggedFeature with features="
