"""`stoker.Predictor`: answers from a bundle, for one row or a million, from one thread or many."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.serve.batching import CallerQueue
from stoker.serve.bundle import KERAS, BundleWarning
from stoker.serve.engines.choosing import choose_engine
from stoker.serve.proof import read_recordings
from stoker.serve.rows import InputRows, as_rows
from stoker.serve.safety.opening import Trust, open_bundle
from stoker.serve.signature import Array
from stoker.tf_internals.types import Dataset

_CHUNK_BYTES = 4 << 20
_CHUNK_ROWS = (32, 16_384)
_STRING_BYTES = 64  # the assumed size of a string when chunks are sized
_MOST_TOGETHER = 256
_MOST_WAITING = 8192
_LABEL = "label"
Outputs = dict[str, Any]
"""The outputs by name: arrays, or the values of one row."""


class Predictor:
    """Answers requests with a bundle.

        predictor = stoker.Predictor("bundle/")
        predictor.predict({"age": 31, "city": "Rome"})       # one row: {"label": "yes", "scores": array([...])}
        predictor.predict(frame)                              # many: arrays with a row for each

    Any number of threads may call it at once. Small requests that arrive together share one call of the model.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        engine: str | None = None,
        queue: int = _MOST_WAITING,
        allow_ops: Iterable[str] = (),
        require_signature: str | os.PathLike[str] | None = None,
    ) -> None:
        """Load a bundle.

        Args:
            path: the bundle's directory.
            engine: "session", "threads", "function", "xla", "litert" or "onnx"; the quickest one by default.
            queue: how many rows may wait in the queue.
            allow_ops: TensorFlow operations to allow although they reach outside the model ("ReadFile", ...).
            require_signature: the public key that must have signed the bundle, as text or as a file.

        Raises:
            BundleError: this is not a bundle, it differs from what was exported, it would reach outside the model, or
                it does not give its recorded answers here.
        """
        # Keras' own file is as large as the SavedModel and not needed here.
        self.bundle = open_bundle(path, Trust.of(allow_ops, require_signature), unread=[KERAS])
        if self.bundle.note:
            warnings.warn(self.bundle.note, BundleWarning, stacklevel=2)
        self.engine = choose_engine(self.bundle, engine)
        self.run = self.engine.run
        self._inputs, self._outputs = self.bundle.signature.inputs, self.bundle.signature.outputs
        self._queue = CallerQueue(self.run, _MOST_TOGETHER, queue)
        self._words = {word.encode("utf-8"): word for word in self.bundle.labels or ()}

    def predict(self, rows: object, *, timeout: float | None = None) -> Outputs:
        """Answer one row or many.

        Args:
            rows: one row (a dict of values; an array or list for a model of one input), or many: a dict of columns, a
                list of dicts, an array, a pandas or polars frame, a `tf.data.Dataset`. An image is its
                pixels, the bytes of its file, or its `Path`.
            timeout: give up after waiting this many seconds in the queue.

        Returns:
            The outputs by name: arrays with one entry per row, or the values of a single row.

        Raises:
            ArgumentError: the rows do not fit; the line names the field, what it takes and what it got.
            BusyError: the queue is full.
            DeadlineError: the timeout passed first.
        """
        if isinstance(rows, tf.data.Dataset):
            return self._join([self._chunks(as_rows(self._inputs, part)) for part in self._parts(rows)])
        ready = as_rows(self._inputs, rows)
        if ready.count == 0:
            return self.named(self._none())
        small = ready.count <= _MOST_TOGETHER
        answers = self._queue.ask(ready, timeout) if small else self._chunks(ready)
        return self.named([one[0] for one in answers] if ready.alone else answers)

    def warm(self) -> None:
        """Run the recorded examples, alone and together, so that no caller pays for the slow first calls."""
        inputs, _ = read_recordings(self.bundle)
        arrays = [inputs[field.name] for field in self._inputs]
        self.run([one[:1] for one in arrays])
        self.run(arrays)
        self.run([np.concatenate([one] * -(-_MOST_TOGETHER // len(one)))[:_MOST_TOGETHER] for one in arrays])

    def named(self, answers: list[Array]) -> Outputs:
        """Return the outputs by name, labels as text."""
        found = {field.name: one for field, one in zip(self._outputs, answers, strict=True)}
        if self._words and _LABEL in found:
            label = found[_LABEL]
            found[_LABEL] = self._text(label) if isinstance(label, bytes) else self._texts(label)
        return found

    def _text(self, label: bytes) -> str:
        return self._words.get(label) or label.decode("utf-8", "replace")

    def _texts(self, labels: Array) -> Array:
        return np.array([self._text(one) for one in labels], dtype=object)

    def _chunks(self, rows: InputRows) -> list[Array]:
        """Answer many rows in calls of a size at which the model is fast and takes little memory."""
        each = sum(_bytes_per_row(array) for array in rows.arrays)
        size = max(_CHUNK_ROWS[0], min(_CHUNK_ROWS[1], _CHUNK_BYTES // max(1, each)))
        parts = [
            self.run([array[first : first + size] for array in rows.arrays])
            for first in range(0, rows.count, size)
        ]
        return parts[0] if len(parts) == 1 else [np.concatenate(one) for one in zip(*parts, strict=True)]

    def _join(self, parts: list[list[Array]]) -> Outputs:
        if not parts:
            return self.named(self._none())
        return self.named([np.concatenate(one) for one in zip(*parts, strict=True)])

    def _parts(self, dataset: Dataset) -> Iterator[object]:
        """Yield the inputs of each batch; rows that come one by one are batched."""
        spec = dataset.element_spec
        spec = spec[0] if isinstance(spec, tuple) else spec
        leaf = next(iter(spec.values())) if isinstance(spec, dict) else spec
        name = next(iter(spec)) if isinstance(spec, dict) else self._inputs[0].name
        field = next((one for one in self._inputs if one.name == name), None)
        if field is None or not isinstance(leaf, tf.TensorSpec):
            raise ArgumentError(
                f"the dataset gives {spec}; the inputs are {', '.join(map(str, self._inputs))}"
            )
        if leaf.shape.rank == len(field.shape):
            dataset = dataset.batch(1024)
        for element in dataset.prefetch(2).as_numpy_iterator():
            yield element[0] if isinstance(element, tuple) else element

    def _none(self) -> list[Array]:
        return [
            np.empty(
                (0, *(size or 0 for size in field.shape)), object if field.dtype == "string" else field.dtype
            )
            for field in self._outputs
        ]


def _bytes_per_row(array: Array) -> int:
    each = _STRING_BYTES if array.dtype == object else int(array.dtype.itemsize)
    return int(math.prod(array.shape[1:])) * each
