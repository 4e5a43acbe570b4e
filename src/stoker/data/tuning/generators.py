"""`from_generator` drained in chunks: one call into Python for many rows instead of one for each.

The user's generator is reachable through the closures of what `from_generator` builds. A chunk converts each row by the
same rules as TensorFlow does, at once, so that a generator may use its arrays again; whatever does not fit goes through
TensorFlow's own conversion and fails with its words. A row that raises is raised after the rows before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from stoker.tf_internals import datasets
from stoker.tf_internals.pipelines import convert_row, nest, unbatch_dense

# Chunks grow from one row: whoever takes only a few rows does not make the generator go far ahead.
_MOST_ROWS = 1024
_MOST_BYTES = 4 << 20


@dataclass(frozen=True)
class Source:
    """What a `from_generator` stage was made of."""

    generator: Callable[..., Any]
    args: tuple[Any, ...]
    signature: Any

    @property
    def row_bytes(self) -> int:
        """The size of a row, text not counted."""
        return sum(spec.shape.num_elements() * spec.dtype.size for spec in nest.flatten(self.signature))


def source(dataset: Any) -> Source | None:
    """What is behind a `from_generator` stage; None where TensorFlow builds it in another way than is known."""
    function = _cells(datasets.python_function(datasets.map_function(dataset)))
    begin = _cells(function.get("get_iterator_id_fn"))
    state = begin.get("generator_state")
    if state is None or "args" not in begin or "output_signature" not in function:
        return None
    return Source(datasets.generator_behind(state), tuple(begin["args"]), function["output_signature"])


def _cells(function: Any) -> dict[str, Any]:
    if getattr(function, "__closure__", None) is None:
        return {}
    return {
        name: cell.cell_contents
        for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True)
    }


def starts_anew(found: Source) -> bool:
    """Whether each call of the generator starts again: one that hands out the same iterator can be read only once."""
    args = [arg.numpy() for arg in found.args]
    first, second = iter(found.generator(*args)), iter(found.generator(*args))
    return first is not second


def plain(found: Source) -> Any:
    """The rows as `from_generator` gives them."""
    return tf.data.Dataset.from_generator(
        found.generator, output_signature=found.signature, args=found.args or None
    )


def is_chunked(found: Source) -> bool:
    """Whether this is a generator of chunks that was made here."""
    return getattr(found.generator, "__qualname__", "").startswith(f"{_dataset.__qualname__}.")


def rows(found: Source) -> Any:
    """The rows one by one, drained in chunks."""
    return unbatch_dense(_dataset(found, 1, _most_rows(found), whole=False))


def batches(found: Source, batch_size: int, drop_remainder: bool, ahead: bool = True) -> Any:
    """The rows in batches: a chunk holds one or, if the generator may run ahead, a growing number of them."""
    most = max(batch_size, _most_rows(found) // batch_size * batch_size) if ahead else batch_size
    chunks = _dataset(found, batch_size, most, whole=True)
    return chunks.rebatch(batch_size, drop_remainder=drop_remainder)


def _most_rows(found: Source) -> int:
    return max(1, min(_MOST_ROWS, _MOST_BYTES // max(1, found.row_bytes)))


def _dataset(found: Source, least: int, most: int, whole: bool) -> Any:
    """Chunks of `least` rows, then of ever more up to `most`.

    Args:
        whole: `least` is the size of a batch. A batch that fails does not give the rows before the failure.
    """

    def chunked(*args: Any) -> Iterator[Any]:
        for length, failed, columns in _filled(
            iter(found.generator(*args)), found.signature, _sizes(least, most)
        ):
            given = length // least * least if whole and failed is not None else length
            if given:
                yield nest.pack_sequence_as(found.signature, [column[:given] for column in columns])
            if failed is not None:
                raise failed

    # Reports name the user's generator.
    chunked.__wrapped__ = found.generator  # type: ignore[attr-defined]
    specs = nest.map_structure(datasets.batch_spec, found.signature)
    return tf.data.Dataset.from_generator(chunked, output_signature=specs, args=found.args or None)


def _sizes(least: int, most: int) -> Iterator[int]:
    size = least
    while True:
        yield size
        size = min(2 * size, most)


def _filled(
    rows: Iterator[Any], signature: Any, sizes: Iterator[int]
) -> Iterator[tuple[int, Exception | None, list[Any]]]:
    """Chunk after chunk: how many rows it has, what ended it early, its columns."""
    specs = nest.flatten(signature)
    flat = _flattener(signature)
    for size in sizes:
        chunk = [_Column(spec, size) for spec in specs]
        adders = [column.add for column in chunk]
        length, failed = 0, None
        try:
            for row in rows:
                for add, value in zip(adders, flat(row), strict=True):
                    add(value, length)
                length += 1
                if length == size:
                    break
        except Exception as error:  # noqa: BLE001 - not swallowed: it is raised behind the rows that came before it
            failed = error
        if not length and failed is None:
            return
        yield length, failed, [column.array(length) for column in chunk]
        if length < size:
            return


class _Column:
    """One component of the rows of a chunk."""

    def __init__(self, spec: Any, size: int) -> None:
        self._dtype = np.dtype(spec.dtype.as_numpy_dtype)
        self._name = spec.dtype.name
        self._shape = tuple(spec.shape)
        self._fits = _fitting(self._dtype)
        self._scalars: list[Any] = []
        self._array: Any = np.empty((size, *self._shape), self._dtype) if self._shape else None

    def add(self, value: Any, place: int) -> None:
        """Take a value as it is now: the generator may change its arrays afterwards."""
        if self._array is None:
            self._scalars.append(value if self._fits(value) else self._converted(value)[()])
            return
        if type(value) is not np.ndarray or value.dtype != self._dtype or value.shape != self._shape:
            value = self._converted(value)
        self._array[place] = value

    def _converted(self, value: Any) -> Any:
        """By TensorFlow's rules, with its words where they are broken."""
        try:
            array = convert_row(value, self._dtype)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"`generator` yielded an element that could not be converted to the expected type. "
                f"The expected type was {self._name}, but the yielded element was {value}."
            ) from error
        if array.dtype != self._dtype:
            raise TypeError(
                f"`generator` yielded an element of type {array.dtype} where an element of type "
                f"{self._dtype} was expected."
            )
        if array.shape != self._shape:
            raise TypeError(
                f"`generator` yielded an element of shape {array.shape} where an element of shape "
                f"{self._shape} was expected."
            )
        return array

    def array(self, length: int) -> Any:
        """The first rows."""
        if self._array is None:
            return np.asarray(self._scalars[:length], self._dtype)
        return self._array[:length]


def _fitting(dtype: Any) -> Callable[[Any], bool]:
    """Which scalars NumPy converts in a list just as it does alone, without failing."""
    if dtype.kind == "f":
        return lambda value: type(value) is float
    if dtype.kind in "iu":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        return lambda value: type(value) is int and least <= value <= most
    if dtype.kind == "b":
        return lambda value: type(value) is bool
    if dtype.kind == "O":
        return lambda value: type(value) in (str, bytes)
    return lambda value: False


def _flattener(signature: Any) -> Callable[[Any], Any]:
    """What takes a row apart: quickly where it looks as expected, else by TensorFlow's rules."""
    types = nest.map_structure(lambda spec: spec.dtype, signature)

    def slow(row: Any) -> Any:
        try:
            return nest.flatten_up_to(types, row)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"`generator` yielded an element that did not match the expected structure. "
                f"The expected structure was {types}, but the yielded element was {row}."
            ) from error

    if isinstance(signature, tf.TensorSpec):
        return lambda row: (row,)
    if type(signature) is tuple and all(isinstance(spec, tf.TensorSpec) for spec in signature):
        count = len(signature)
        return lambda row: row if type(row) is tuple and len(row) == count else slow(row)
    if type(signature) is dict and all(isinstance(spec, tf.TensorSpec) for spec in signature.values()):
        names = sorted(signature)
        wanted = set(names)
        return lambda row: (
            [row[name] for name in names] if type(row) is dict and row.keys() == wanted else slow(row)
        )
    return slow
