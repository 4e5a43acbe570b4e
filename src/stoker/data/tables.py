"""Turn a table into a dataset: from a source, through the store, to batches of `({column: tensor}, label)`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import tensorflow as tf

from stoker.data import statistics
from stoker.data.array_types import Array
from stoker.data.arrow_sources import Unfit
from stoker.data.cache import CachePlace
from stoker.data.category_words import choose_words
from stoker.data.cells import CellReading
from stoker.data.columns import Column, apply_types, check_known, from_store, warn_caller
from stoker.data.features import UNKNOWN, Feature, Features
from stoker.data.ingest import TableSource, load_table
from stoker.data.labels import Label, check_complete, label_of, values_of
from stoker.data.lenient import LENIENT, LenientTable
from stoker.data.odd_cells import check_missing
from stoker.data.order import Order
from stoker.data.splits import By, Passes, make_datasets, orders
from stoker.data.store import Store
from stoker.errors import ArgumentError
from stoker.tf_internals.types import Dataset, Nest, Tensor

# Up to this one, float32 holds whole numbers exactly.
_EXACT_FLOAT32 = 2**24
# The most words of a category that a bundle recognises in any case.
_MOST_WORDS = 1_000


@dataclass(frozen=True)
class TableOptions(Passes):
    """The options of all table readers; `readers.csv` describes them."""

    label: str | None = None
    columns: Sequence[str] | None = None
    types: dict[str, str] | None = None
    missing: str | Sequence[str] | None = None
    raw: bool = False
    label_mode: str = "auto"
    cache: CachePlace = None
    group: str | None = None
    time: str | None = None
    lenient: bool = False

    @property
    def divider(self) -> str | None:
        """The column that the rows are split by."""
        return self.group or self.time


def table(source: TableSource, options: TableOptions, reading: Sequence[object] = ()) -> Dataset:
    """Return the dataset of a source; two of them with `validation_split`.

    Args:
        source: the rows.
        options: the caller's options.
        reading: other options that change the values, for the cache's key.
    """
    if options.lenient and not options.raw:
        source = LenientTable(source, options.types, check_missing(options.missing), options.label)
        reading = [*reading, LENIENT, options.label]
    wanted = _choose_columns(source, options)
    reading = [*reading, options.raw, options.types, *([options.missing] if options.missing else [])]
    store = load_table(source, wanted, reading, options.cache)
    whole, parts = split_table(store, options, source.name)
    return make_datasets(parts, whole.dataset, whole.features)


def split_table(
    store: Store, options: TableOptions, name: str, label_name: str = ""
) -> tuple[Table, list[Order]]:
    """Return the table of a store, and the order of each of its parts.

    Args:
        store: the rows.
        options: the caller's options.
        name: the name of the source, for messages.
        label_name: the name of the label in the file, if it has another name in the store.

    Raises:
        ArgumentError: the label or the split is invalid.
    """
    columns, label = from_store(store), None
    if options.label is not None and not options.raw:
        column = next(one for one in columns if one.name == options.label)
        label = label_of(store, column, options.label_mode, name, label_name)
    parts = orders(store.rows, options, _divider(store, columns, options, name))
    return Table(store, columns, options, label, parts[0]), parts


def _divider(store: Store, columns: list[Column], options: TableOptions, name: str) -> By | None:
    if options.group is not None and options.time is not None:
        raise ArgumentError(
            f"group={options.group!r} and time={options.time!r}: split the rows by one of them"
        )
    if options.divider is None:
        return None
    how = "time" if options.group is None else "group"
    column = next(one for one in columns if one.name == options.divider)
    if options.divider == options.label:
        raise ArgumentError(f"rows cannot be split by {options.divider!r} ({how}): it is the label")
    if column.kind == "text" or (how == "time" and column.kind in ("category", "truth")):
        wanted = (
            "dates or numbers; write dates as 2026-12-31 or 2026-12-31 23:59:59"
            if how == "time"
            else "numbers, dates or text that repeats"
        )
        raise ArgumentError(
            f"rows cannot be split by {options.divider!r} ({how}): it holds {column.kind}, but should hold {wanted}"
        )
    check_complete(store, column, name, how)
    return By(how, options.divider, np.asarray(values_of(store, column)))


def _choose_columns(source: TableSource, options: TableOptions) -> list[Column]:
    found = apply_types(source.columns(), options.types)
    names = [column.name for column in found]
    readable = [c.name for c in found if not (options.lenient and isinstance(c, Unfit))]
    chosen = list(options.columns) if options.columns is not None else readable
    for name in chosen:
        check_known(names, name, "columns")
    if options.label is not None:
        check_known(names, options.label, "label")
        chosen = [*(name for name in chosen if name != options.label), options.label]
    for how, divided_by in (("group", options.group), ("time", options.time)):
        if divided_by is not None:
            check_known(names, divided_by, how)
            chosen = [*(name for name in chosen if name != divided_by), divided_by]
    if not [name for name in chosen if name not in (options.label, options.group, options.time)]:
        raise ArgumentError(f"{source.name} has no column besides the label: there is nothing to learn from")
    columns = [next(column for column in found if column.name == name) for name in chosen]
    for column in columns:
        if isinstance(column, Unfit):
            known = column.reason.startswith(source.name)
            raise ArgumentError(column.reason if known else f"{source.name}: {column.reason}")
        # Raw text is passed on unchanged; raw numbers must not be rounded.
        if column.doubt and not (options.raw and column.kind == "category"):
            raise ArgumentError(column.doubt)
        if column.note and not options.raw:
            warn_caller(column.note)
    # Raw numbers must not be rounded to float32.
    return [replace(c, wide=True) if options.raw and c.kind == "number" else c for c in columns]


class Table:
    """Batches of a store's rows."""

    def __init__(
        self, store: Store, columns: list[Column], options: TableOptions, label: Label | None, training: Order
    ) -> None:
        self._store, self._columns, self._options, self._label = store, columns, options, label
        self._training = training
        # Columns that are not inputs of the model.
        self._aside = {options.label, options.group, options.time}
        self._places = statistics.places(columns)
        self._tables: list[Array] = []
        self.features = self._describe()

    def _describe(self) -> Features:
        mask = self._training.training_mask()
        counts = statistics.counts(self._store, self._columns, mask)
        features = []
        for column in self._columns:
            words = self._vocabulary(column, counts.get(column.name))
            features.append(
                Feature(
                    column.name,
                    column.kind,
                    self._dtype(column),
                    words,
                    int(self._store.meta["missing"][column.name]),
                    {"D": "days", "s": "seconds"}.get(column.unit, column.unit),
                    self._describe_reading(column),
                )
            )
        self._tables = [self._table(feature) for feature in features if feature.kind == "category"]
        store, columns = self._store, self._columns
        return Features(
            [feature for feature in features if feature.name not in self._aside],
            None if self._label is None else self._label.classes,
            self._options.label,
            lambda: statistics.moments(store, columns, mask),
            self._texts,
            self._store.meta.get("found"),
            next((self._describe_reading(one) for one in columns if one.name == self._options.label), None),
        )

    def _describe_reading(self, column: Column) -> CellReading:
        """Return how to read the cells of a row sent for prediction: in the same way as the cells of the file."""
        found = self._store.meta.get("found", {})
        reading = CellReading(column.kind, unit=column.unit)
        if column.reading:
            reading = CellReading.from_json(json.loads(column.reading))
        if column.kind == "category" and self._options.lenient and not self._options.raw:
            words = self._store.meta["values"].get(column.name, [])
            # If there are too many words to list, list those that occurred in several cases.
            listed = (
                words
                if len(words) <= _MOST_WORDS
                else sorted({new for _, new in found["merged"].get(column.name, ())})
            )
            reading = replace(
                reading,
                trimmed=True,
                words=tuple(choose_words(sorted(listed)).values()),
                blank=column.name != self._options.label,
            )
        # Rows that were left out may have anything in their cells.
        tolerant = column.name in found.get("bad", ()) or bool(found.get("uneven"))
        return replace(reading, gaps=check_missing(self._options.missing), tolerant=tolerant)

    def _vocabulary(self, column: Column, counts: Array | None) -> tuple[str, ...] | None:
        """Return the values of the training rows, the most frequent first, after the one that stands for all others."""
        if counts is None:
            return None
        words = self._store.meta["values"].get(column.name, [])
        order = sorted(np.flatnonzero(counts[1:]), key=lambda code: (-counts[code + 1], words[code]))
        return (UNKNOWN, *(words[code] for code in order))

    def _table(self, feature: Feature) -> Array:
        """Return the values in a batch of a missing value and of each code, in this order."""
        words = self._store.meta["values"].get(feature.name, [])
        if self._options.raw:
            return np.array(["", *words], dtype=object)
        if self._label is not None and feature.name == self._label.column.name:
            return np.arange(-1, len(words), dtype=np.int32)
        ids = {word: number for number, word in enumerate(feature.vocabulary or ())}
        return np.array([0, *(ids.get(word, 0) for word in words)], np.int32)

    def _dtype(self, column: Column) -> str:
        if column.kind == "text":
            return "string"
        if column.kind == "category":
            return "string" if self._options.raw else "int32"
        if column.kind in ("whole", "date") and column.missing:
            small = self._store.meta["largest"][column.name] <= _EXACT_FLOAT32
            return "float32" if small and not self._options.raw else "float64"
        if column.kind == "truth" and self._options.raw and not self._store.meta["missing"][column.name]:
            return "bool"
        return column.dtype

    def _texts(self, name: str) -> Dataset:
        """Return the texts of one column alone, over the training rows, in the order of the file."""
        order = replace(self._training, shuffle=False, batch_size=1024, shard=(0, 1), drop_remainder=False)
        return self.texts(name, order)

    def texts(self, name: str, order: Order) -> Dataset:
        """Return the texts of one column alone, in batches."""
        number = [column.name for column in self._columns].index(name)
        return order.dataset(lambda rows: self._store.strings(number, rows))

    def dataset(self, order: Order) -> Dataset:
        """Return the batches of one part."""
        return order.dataset(self.batch)

    def batch(self, rows: Tensor) -> Nest:
        """Return, in a graph, the batch of chosen rows."""
        values = self._numbers(rows)
        for number, column in enumerate(self._columns):
            if column.kind == "text":
                values[column.name] = self._store.strings(number, rows)
        return self._element(values)

    def labels(self, rows: Tensor) -> Tensor:
        """Return, in a graph, only the labels of chosen rows."""
        return self._label_of(self._numbers(rows))

    def _numbers(self, rows: Tensor) -> dict[str, Tensor]:
        """Return, in a graph, all columns of chosen rows except text."""
        values: dict[str, Tensor] = {}
        for dtype, names in self._places.items():
            values |= zip(names, self._split(dtype, tf.gather(self._store.tensor(dtype), rows)), strict=True)
        return values

    def _split(self, dtype: str, block: Tensor) -> list[Tensor]:
        """Return the columns of an array's rows; one lookup serves the codes of all columns."""
        count = len(self._places[dtype])
        if dtype == "int32":
            sizes = [len(one) for one in self._tables]
            starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32) + 1
            block = tf.gather(tf.constant(np.concatenate(self._tables)), block + starts)
        return list(tf.unstack(block, num=count, axis=1))

    def _element(self, values: dict[str, Tensor]) -> Nest:
        inputs = {
            column.name: self._cast(column, values[column.name])
            for column in self._columns
            if column.name not in self._aside
        }
        return inputs if self._options.label is None else (inputs, self._label_of(values))

    def _label_of(self, values: dict[str, Tensor]) -> Tensor:
        column = next(one for one in self._columns if one.name == self._options.label)
        value = values[column.name]
        if self._label is not None and self._label.classes is not None:
            return self._label.tensor(value)
        return self._cast(column, value)

    def _cast(self, column: Column, value: Tensor) -> Tensor:
        wanted = self._dtype(column)
        return value if wanted == value.dtype.name else tf.cast(value, wanted)
