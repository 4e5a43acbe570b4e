"""The label of a table: a number, or the index of a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from stoker.data.array_types import Array
from stoker.data.columns import EXACT, Column, from_store, warn_caller
from stoker.data.statistics import places
from stoker.data.store import Store
from stoker.errors import ArgumentError
from stoker.tf_internals.types import Tensor

# The name of a class: a text, a truth value or a number.
ClassName: TypeAlias = str | bool | int | float

MODES = ("auto", "int", "categorical", "binary", "number")
_MOST_CLASSES = 10_000


@dataclass(frozen=True)
class Label:
    """The label column, and how it is turned into what the loss takes.

    Attributes:
        column: the column of the store.
        mode: "number", "int", "categorical" or "binary".
        classes: the classes that the indices stand for; None for a number.
        codes: for a category: the class of each value in the store.
    """

    column: Column
    mode: str
    classes: list[ClassName] | None
    codes: Array | None = None

    def tensor(self, value: Tensor) -> Tensor:
        """Return, in a graph, the label of a batch, from the column's values (for a category, its codes)."""
        import tensorflow as tf

        if self.classes is None:
            return value
        if self.column.kind == "category":
            index = tf.gather(tf.constant(self.codes, tf.int32), value)
        elif self.column.kind == "truth":
            index = tf.cast(value, tf.int32)
        else:
            index = tf.searchsorted(tf.constant(self.classes, value.dtype), value)
        if self.mode == "categorical":
            return tf.one_hot(index, len(self.classes))
        return tf.cast(index, tf.float32) if self.mode == "binary" else index


def label_of(store: Store, column: Column, mode: str, name: str, label_name: str = "") -> Label:
    """Return the label, from its column and the caller's mode.

    Args:
        store: the rows.
        column: the label's column in the store.
        mode: one of `MODES`.
        name: the name of the source, for messages.
        label_name: the name of the label in the file, if it has another name in the store.

    Raises:
        ArgumentError: labels are missing, or are neither numbers nor classes.
    """
    if mode not in MODES:
        raise ArgumentError(f"label_mode={mode!r} must be one of {', '.join(MODES)}")
    if column.kind == "text":
        raise ArgumentError(
            f"label: {column.name} holds text that differs from row to row: give a column of numbers or classes"
        )
    check_complete(store, column, name, "label", label_name)
    names_classes = column.kind in ("category", "truth")
    if mode == "number" and column.kind == "category":
        raise ArgumentError(f"label_mode='number': {column.name} holds text; use label_mode='int'")
    if mode == "number" or (mode == "auto" and not names_classes):
        return Label(column, "number", None)
    classes, counts, codes = _classes(store, column)
    if mode == "binary" and len(classes) != 2:
        raise ArgumentError(f"label_mode='binary' needs 2 classes, but {column.name} has {len(classes)}")
    warn_of_single_examples(column.name, classes, counts)
    return Label(column, "int" if mode == "auto" else mode, classes, codes)


def warn_of_single_examples(where: str, classes: Sequence[ClassName], counts: Array | list[int]) -> None:
    """Warn of classes with a single row, which can serve for training or for testing but not for both."""
    lonely = [one for one, count in zip(classes, counts, strict=True) if count == 1]
    if lonely:
        more = f", and so have {len(lonely) - 1:,} more" if len(lonely) > 1 else ""
        warn_caller(
            f"class {lonely[0]!r} of {where} has a single example{more}: "
            "it can be used for training or testing, not both"
        )


def values_of(store: Store, column: Column) -> Array:
    """Return the values of a column of numbers, or the codes of a category."""
    return store.array(column.dtype)[:, places(from_store(store))[column.dtype].index(column.name)]


def check_complete(store: Store, column: Column, name: str, what: str, label_name: str = "") -> None:
    """Check that every row has a value in this column. A blank label counts as missing: CSV text has no other gaps.

    Raises:
        ArgumentError: some rows have no value.
    """
    values = values_of(store, column)
    absent = values < 0 if column.kind == "category" else np.zeros(len(values), bool)
    if column.kind != "category" and values.dtype.kind == "f":
        absent = np.isnan(values)
    if column.kind == "category" and what == "label":
        blank = [
            code for code, word in enumerate(store.meta["values"].get(column.name, ())) if not word.strip()
        ]
        absent |= np.isin(values, blank)
    if not absent.any():
        return
    row, count, shown = int(np.argmax(absent)) + 1, int(absent.sum()), label_name or column.name
    if count == 1:
        raise ArgumentError(f"{name}: row {row:,} has no {what} ({shown}): fill it in or leave it out")
    raise ArgumentError(
        f"{name}: {count:,} rows have no {what} ({shown}), the first is row {row:,}: "
        "fill them in or leave those rows out"
    )


def _classes(store: Store, column: Column) -> tuple[list[ClassName], Array | list[int], Array | None]:
    """Return the classes, how many rows each has, and for a category the class of each value."""
    if column.kind == "category":
        words = store.meta["values"][column.name]
        counts = np.bincount(values_of(store, column), minlength=len(words))
        order = sorted(range(len(words)), key=words.__getitem__)
        codes = np.empty(len(words), np.int32)
        codes[order] = np.arange(len(words))
        return [words[i] for i in order], counts[order], codes
    found, counts = np.unique(values_of(store, column), return_counts=True)
    if column.kind == "truth":
        both = {bool(value): int(count) for value, count in zip(found, counts, strict=True)}
        return [False, True], [both.get(False, 0), both.get(True, 0)], None
    if len(found) > _MOST_CLASSES:
        raise ArgumentError(
            f"label: {column.name} has {len(found):,} different values, too many for classes: give label_mode='number'"
        )
    if found.dtype.kind == "f" and np.array_equal(found, np.round(found)) and np.abs(found).max() <= EXACT:
        # Whole numbers are floats if some cells are missing.
        found = found.astype(np.int64)
    return found.tolist(), counts, None
