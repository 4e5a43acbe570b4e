"""Records that do not fit the spec of a TFRecord file: the line that names the feature and the record."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError

from stoker.errors import ArgumentError

TYPES = {"bytes_list": tf.string, "float_list": tf.float32, "int64_list": tf.int64}


def explain_misfit(
    path: Path, compression: str, spec: dict[str, Any], given: bool, error: Exception
) -> ArgumentError:
    """What to raise for a file that TensorFlow cannot parse with this spec: the first record that does not fit.

    Args:
        path: the file.
        compression: of the file, as `tf.data.TFRecordDataset` takes it.
        spec: as `tf.io.parse_example` takes it.
        given: by the caller, not inferred from the first records.
        error: TensorFlow's.
    """
    for number, record in enumerate(tf.data.TFRecordDataset(str(path), compression), 1):
        try:
            features = tf.train.Example.FromString(record.numpy()).features.feature
        except DecodeError:
            return ArgumentError(f"{path}, record {number:,} is not a tf.train.Example")
        for name, wanted in spec.items():
            key = getattr(wanted, "value_key", None) or name
            why = _misfit(features.get(key), wanted, "in features=" if given else "in the records before")
            if why:
                return ArgumentError(f"{path}, record {number:,}: feature {key} {why}")
    return ArgumentError(f"{path}: {error.message if isinstance(error, tf.errors.OpError) else error}")


def _misfit(feature: Any, wanted: Any, known: str) -> str:
    """Why a feature does not fit what is wanted of it; empty if it does."""
    kind = None if feature is None else feature.WhichOneof("kind")
    fixed = isinstance(wanted, tf.io.FixedLenFeature)
    if kind is None:
        gone = fixed and wanted.default_value is None
        return (
            f"is missing, but {wanted.dtype.name} {known}: give it a default with features=" if gone else ""
        )
    dtype = TYPES[kind]
    if dtype != wanted.dtype:
        return f"is {dtype.name}, but {wanted.dtype.name} {known}: write all records with one type"
    count = len(getattr(feature, kind).value)
    length = math.prod(wanted.shape) if fixed else count
    if count == length or (count == 0 and wanted.default_value is not None):
        return ""
    return f"has {count:,} values, but {length:,} {known}: give it as tf.io.RaggedFeature with features="
