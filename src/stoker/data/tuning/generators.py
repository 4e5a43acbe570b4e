"""Read `from_generator` in chunks: one call into Python for many rows instead of one for each.

The user's generator is found in the closures that `from_generator` builds. A chunk converts each row at once, by
TensorFlow's rules, so that a generator may reuse its arrays. A value that does not fit goes through TensorFlow's own
conversion, and fails with its message. The generator's own error is raised after the rows that came before it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from stoker.data.array_types import Array
from stoker.tf_internals import datasets
from stoker.tf_internals.pipelines import convert_row, nest, unbatch_dense
from stoker.tf_internals.types import Dataset, Nest, Tensor, TensorSpec

# Chunks grow from one row, so that the generator does not run far ahead of a program that takes only a few.
_MOST_ROWS = 1024
_MOST_BYTES = 4 << 20


# A value that a generator yields, before TensorFlow converts it.
_Given: TypeAlias = Any


@dataclass(frozen=True)
class GeneratorSource:
    """The parts from which a `from_generator` stage was made."""

    generator: Callable[..., Iterable[_Given]]
    args: tuple[Tensor, ...]
    signature: Nest

    @property
    def row_bytes(self) -> int:
        """The size of a row without its text."""
        return sum(spec.shape.num_elements() * spec.dtype.size for spec in nest.flatten(self.signature))


def source(dataset: Dataset) -> GeneratorSource | None:
    """Return the source of a `from_generator` stage; None if TensorFlow builds it in an unknown way."""
    function = _cells(datasets.python_function(datasets.map_function(dataset)))
    begin = _cells(function.get("get_iterator_id_fn"))
    state = begin.get("generator_state")
    if state is None or "args" not in begin or "output_signature" not in function:
        return None
    return GeneratorSource(
        datasets.generator_behind(state), tuple(begin["args"]), function["output_signature"]
    )


def _cells(function: Callable[..., Nest] | None) -> Mapping[str, Any]:
    return inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}


def does_start_anew(found: GeneratorSource) -> bool:
    """Return whether each call of the generator starts again.

    A generator that returns the same iterator each time can be read only once.
    """
    args = [arg.numpy() for arg in found.args]
    first, second = iter(found.generator(*args)), iter(found.generator(*args))
    return first is not second


def make_plain(found: GeneratorSource) -> Dataset:
    """Return the rows as `from_generator` gives them."""
    return tf.data.Dataset.from_generator(
        found.generator, output_signature=found.signature, args=found.args or None
    )


def is_chunked(found: GeneratorSource) -> bool:
    """Return whether this is a generator of chunks that this module made."""
    return getattr(found.generator, "__qualname__", "").startswith(f"{_dataset.__qualname__}.")


def rows(found: GeneratorSource) -> Dataset:
    """Return the rows one by one, read in chunks."""
    return unbatch_dense(_dataset(found, 1, _limit_rows(found), whole=False))


def batches(found: GeneratorSource, batch_size: int, drop_remainder: bool, ahead: bool = True) -> Dataset:
    """Return the rows in batches. A chunk holds one batch, or a growing number if the generator may run ahead."""
    most = max(batch_size, _limit_rows(found) // batch_size * batch_size) if ahead else batch_size
    chunks = _dataset(found, batch_size, most, whole=True)
    return chunks.rebatch(batch_size, drop_remainder=drop_remainder)


def _limit_rows(found: GeneratorSource) -> int:
    return max(1, min(_MOST_ROWS, _MOST_BYTES // max(1, found.row_bytes)))


def _dataset(found: GeneratorSource, least: int, most: int, whole: bool) -> Dataset:
    """Return chunks of `least` rows, then of more and more rows, up to `most`.

    Args:
        found: the generator.
        least: the number of rows in the first chunk.
        most: the number of rows in the largest chunk.
        whole: whether `least` is the size of a batch, and a batch that fails gives none of its rows.
    """

    def generate_chunks(*args: Array) -> Iterator[Nest]:
        for length, failed, columns in _fill_chunks(
            iter(found.generator(*args)), found.signature, _sizes(least, most)
        ):
            given = length // least * least if whole and failed is not None else length
            if given:
                yield nest.pack_sequence_as(found.signature, [column[:given] for column in columns])
            if failed is not None:
                raise failed

    # Reports name the user's generator.
    vars(generate_chunks)["__wrapped__"] = found.generator
    specs = nest.map_structure(datasets.batch_spec, found.signature)
    return tf.data.Dataset.from_generator(generate_chunks, output_signature=specs, args=found.args or None)


def _sizes(least: int, most: int) -> Iterator[int]:
    size = least
    while True:
        yield size
        size = min(2 * size, most)


def _fill_chunks(
    rows: Iterator[_Given], signature: Nest, sizes: Iterator[int]
) -> Iterator[tuple[int, Exception | None, list[Array]]]:
    """Yield each chunk: its number of rows, the error that ended it early, its columns."""
    specs = nest.flatten(signature)
    flat = _flattener(signature)
    for size in sizes:
        chunk = [_Component(spec, size) for spec in specs]
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


class _Component:
    """One component of the rows of a chunk."""

    def __init__(self, spec: TensorSpec, size: int) -> None:
        self._dtype = np.dtype(spec.dtype.as_numpy_dtype)
        self._name = spec.dtype.name
        self._shape = tuple(spec.shape)
        self._fits = _make_fit_test(self._dtype)
        self._scalars: list[_Given] = []
        self._array: Array | None = np.empty((size, *self._shape), self._dtype) if self._shape else None

    def add(self, value: _Given, place: int) -> None:
        """Copy a value, because the generator may change its arrays afterwards."""
        if self._array is None:
            self._scalars.append(value if self._fits(value) else self._convert(value)[()])
            return
        if type(value) is not np.ndarray or value.dtype != self._dtype or value.shape != self._shape:
            value = self._convert(value)
        self._array[place] = value

    def _convert(self, value: _Given) -> Array:
        """Return the value as TensorFlow converts it, or raise TensorFlow's error."""
        try:
            array: Array = convert_row(value, self._dtype)
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

    def array(self, length: int) -> Array:
        """Return the first rows."""
        if self._array is None:
            return np.asarray(self._scalars[:length], self._dtype)
        return self._array[:length]


def _make_fit_test(dtype: np.dtype[np.generic]) -> Callable[[_Given], bool]:
    """Return a test for scalars that NumPy converts in a list just as it does alone."""
    if dtype.kind == "f":
        return lambda value: type(value) is float
    if dtype.kind in "iu":
        least, most = np.iinfo(dtype.name).min, np.iinfo(dtype.name).max
        return lambda value: type(value) is int and least <= value <= most
    if dtype.kind == "b":
        return lambda value: type(value) is bool
    if dtype.kind == "O":
        return lambda value: type(value) in (str, bytes)
    return lambda value: False


def _flattener(signature: Nest) -> Callable[[_Given], Iterable[_Given]]:
    """Return a function that takes a row apart: fast if the row is as expected, otherwise by TensorFlow's rules."""
    types = nest.map_structure(lambda spec: spec.dtype, signature)

    def flatten_slowly(row: _Given) -> list[_Given]:
        try:
            return list(nest.flatten_up_to(types, row))
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"`generator` yielded an element that did not match the expected structure. "
                f"The expected structure was {types}, but the yielded element was {row}."
            ) from error

    if isinstance(signature, tf.TensorSpec):
        return lambda row: (row,)
    if type(signature) is tuple and all(isinstance(spec, tf.TensorSpec) for spec in signature):
        count = len(signature)
        return lambda row: row if type(row) is tuple and len(row) == count else flatten_slowly(row)
    if type(signature) is dict and all(isinstance(spec, tf.TensorSpec) for spec in signature.values()):
        names = sorted(signature)
        wanted = set(names)
        return lambda row: (
            [row[name] for name in names]
            if type(row) is dict and row.keys() == wanted
            else flatten_slowly(row)
        )
    return flatten_slowly
