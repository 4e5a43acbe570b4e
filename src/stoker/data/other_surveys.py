"""Describe what folders of images, TFRecord files and tar shards hold, as far as two seconds of reading can tell."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
import tensorflow as tf

from stoker import clock
from stoker.data.array_types import Array
from stoker.data.class_folders import class_files
from stoker.data.paths import IMAGES
from stoker.data.record_files import tfrecord
from stoker.data.survey import SPEED_S, TOP, Survey, spread
from stoker.data.tar_files import kind_of, samples
from stoker.tf_internals.types import Tensor

_Thing = TypeVar("_Thing")

_MOST_OPENED = 5000


def survey_images(root: Path) -> Survey:
    """Count the classes from the names of all files; find sizes and damage in those that were decoded."""
    files = class_files(root, IMAGES)
    classes = Counter(file.class_name for file in files)
    # Choose files from all classes, not only from the first.
    chosen = files[:: max(1, len(files) // _MOST_OPENED)]
    sizes: Counter[str] = Counter()
    damaged: list[str] = []
    timed = _Timed()
    for file in timed.count_through(chosen):
        try:
            pixels = tf.io.decode_image(tf.io.read_file(os.fsencode(file.path)), expand_animations=False)
            sizes[" x ".join(str(one) for one in pixels.shape)] += 1
        except tf.errors.OpError:
            damaged.append(file.path)
    return {
        "format": "images",
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "rows": len(files),
        **timed.rates(sum(file.size for file in files) / len(files)),
        "damaged": damaged[:TOP],
        "columns": [
            {"name": "image", "kind": "image", "missing": len(damaged), **_top_counts(sizes)},
            {"name": "class", "kind": "category", "missing": 0, **_top_counts(classes)},
        ],
    }


def survey_records(files: list[Path]) -> Survey:
    """Count the records and their features; find the distribution of values in those that were parsed."""
    dataset = tfrecord(files, batch_size=256)
    values: dict[str, list[Array]] = {name: [] for name in dataset.spec}
    timed = _Timed()
    for batch in timed.count_through(dataset):
        # A batch was counted as one record.
        timed.count += int(tf.nest.flatten(batch)[0].shape[0]) - 1
        for name, kept in values.items():
            kept.append(_measure_or_read(batch[name]))
    return {
        **_describe_files("tfrecord", files, dataset.rows, timed),
        "columns": [_feature(name, spec, values[name]) for name, spec in dataset.spec.items()],
    }


def _describe_files(kind: str, files: list[Path], rows: int, timed: _Timed) -> Survey:
    size = sum(path.stat().st_size for path in files)
    shape = {"format": kind, "files": len(files), "bytes": size, "rows": rows}
    return {**shape, **timed.rates(size / max(1, rows))}


def _measure_or_read(feature: Tensor) -> Array:
    if isinstance(feature, tf.RaggedTensor):
        feature = feature.row_lengths()
    return np.ravel((tf.strings.length(feature) if feature.dtype == tf.string else feature).numpy())


def _feature(name: str, spec: tf.io.FixedLenFeature, values: list[Array]) -> Survey:
    ragged = isinstance(spec, tf.io.RaggedFeature)
    shape = "" if ragged or not spec.shape else f" of {' x '.join(str(one) for one in spec.shape)}"
    text = spec.dtype == tf.string
    unit = "values" if ragged else "bytes" if text else ""
    return {
        "name": name,
        "kind": f"{'bytes' if text else spec.dtype.name}{' list' if ragged else shape}",
        "missing": 0,
        "of": unit,
        "values": spread(np.concatenate(values)) if values else None,
    }


def survey_tar(shards: list[Path]) -> Survey:
    """Describe all samples and their members. Only whole numbers are decoded."""
    counts: Counter[str] = Counter()
    numbers: dict[str, Counter[str]] = {}
    lengths: dict[str, list[int]] = {}
    timed = _Timed(None)
    for sample in timed.count_through(samples(shards)):
        for extension, content in sample.members.items():
            counts[extension] += 1
            lengths.setdefault(extension, []).append(len(content))
            if kind_of(extension) == "number":
                numbers.setdefault(extension, Counter())[content.decode("utf-8", "replace").strip()] += 1
    return {
        **_describe_files("tar", shards, timed.count, timed),
        "columns": [
            {"name": name, "missing": timed.count - count}
            | (
                {"kind": "category", **_top_counts(numbers[name])}
                if name in numbers
                else {"kind": kind_of(name) or "unknown", "of": "bytes", "values": spread(lengths[name])}
            )
            for name, count in counts.items()
        ],
    }


def _top_counts(counter: Counter[str]) -> Survey:
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return {"different": len(ordered), "top": [[name, count] for name, count in ordered[:TOP]]}


class _Timed:
    """Iterates for a limited time, and measures how many items there were per second."""

    def __init__(self, seconds: float | None = SPEED_S) -> None:
        self._limit, self._start = seconds, clock.real_ns()
        self.count, self._seconds = 0, 0.0

    def count_through(self, things: Iterable[_Thing]) -> Iterator[_Thing]:
        self._start = clock.real_ns()
        for thing in things:
            self.count += 1
            yield thing
            self._seconds = (clock.real_ns() - self._start) / 1e9
            if self._limit is not None and self._seconds > self._limit:
                return

    def rates(self, bytes_each: float) -> Survey:
        per_s = self.count / max(self._seconds, 1e-9)
        return {"looked_at": self.count, "rows_per_s": round(per_s), "bytes_per_s": round(per_s * bytes_each)}
