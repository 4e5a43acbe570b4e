"""Check the data of any recipe: are there classes to learn, and numbers and words that a network can learn from?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from stoker.data.array_types import Array, Mask
from stoker.data.class_folders import class_files, class_folders
from stoker.data.labels import ClassName
from stoker.data.paths import local_tree
from stoker.errors import ArgumentError
from stoker.recipes.progress import say
from stoker.units import quantity

MOST_CLASSES = 1_000
LEAST_ROWS = 20
_UNEVEN = 4
# A class with fewer rows can hardly be both learned and tested.
_FEW = 10
_HELD_OUT = 0.3
# Variances and losses square numbers as float32.
_LARGEST = float(np.sqrt(np.finfo(np.float32).max))
# The loss is divided by the variance of the target.
_SMALLEST_TARGET = 1e-18
_SMALLEST = float(np.finfo(np.float32).tiny)
# How many words are checked, and the share of them that must look alike.
_CHECKED, _MOST = 1_000, 0.95
_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_DIGITS = r"\d[\d.,]*"
_NUMBERS = {
    "%": re.compile(rf"[-+]?{_DIGITS}\s?%"),
    "$": re.compile(rf"[-+(]?\$\s?[-+]?{_DIGITS}\)?|[-+]?{_DIGITS}\s?\$"),
    "€": re.compile(rf"[-+(]?€\s?[-+]?{_DIGITS}\)?|[-+]?{_DIGITS}\s?€"),
    "£": re.compile(rf"[-+(]?£\s?[-+]?{_DIGITS}\)?"),
    ",": re.compile(r"[-+]?(\d{1,3}(,\d{3})+(\.\d*)?|\d{1,3}(\.\d{3})*,\d+|\d+,\d+)"),
}
# A year has four digits, so that a version is not a date.
_DATES = re.compile(
    r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{4}([./])\d{1,2}\3\d{1,2})([ T]\d{1,2}:\d{2}(:\d{2})?)?"
)


def check_classes(what: str, labels: Array, names: Sequence[ClassName] | None, why: str = "") -> None:
    """Check that there are classes to learn, and rows to learn them from.

    Args:
        what: the target, for messages.
        labels: the labels of the rows: indices of `names`, or the values themselves.
        names: the names of the classes.
        why: why these are classes and what to do if they should not be, for the message that there are too many.

    Raises:
        ArgumentError: there is only one class, or there are too few rows, or too many classes for the rows.
    """
    if len(labels) < LEAST_ROWS:
        raise ArgumentError(
            f"{what} has {quantity(len(labels), 'row')}: a recipe needs {LEAST_ROWS} or more, to hold some out"
        )
    values = np.unique(labels)
    if len(values) < 2:
        only = _name_class(values[0], names)
        raise ArgumentError(f"{what} is {only!r} in every row: there is nothing to learn")
    if len(values) > MOST_CLASSES:
        rule = f"too many for classes (at most {MOST_CLASSES:,})"
    elif len(values) > len(labels) / 2:
        rule = "too many for classes, as each needs two rows"
    else:
        return
    raise ArgumentError(f"{what} has {len(values):,} different values in {len(labels):,} rows, {rule}{why}")


def count_classes(labels: Array, names: Sequence[ClassName] | None) -> list[tuple[ClassName, int]]:
    """Return the classes and how many rows each has, the most frequent first."""
    values, counts = np.unique(labels, return_counts=True)
    found = [(_name_class(value, names), int(count)) for value, count in zip(values, counts, strict=True)]
    return sorted(found, key=lambda one: -one[1])


def report_odd_classes(labels: Array, names: Sequence[ClassName] | None) -> None:
    """Print which classes have very few rows, and which may be one class with two spellings."""
    values, counts = np.unique(labels, return_counts=True)
    shown = [_name_class(value, names) for value in values]
    _report_few([(name, int(count)) for name, count in zip(shown, counts, strict=True) if count < _FEW])
    words = [name for name in shown if isinstance(name, str)]
    _report_alike(words)
    _report_initials(words)


def _name_class(value: np.generic, names: Sequence[ClassName] | None) -> ClassName:
    """Return the name of a class: a number as it will be called, which is whole if it can be."""
    if names is not None:
        return names[int(value.item())]
    number: ClassName = value.item()
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _report_few(few: list[tuple[ClassName, int]]) -> None:
    if few:
        name, count = few[0]
        others = len(few) - 1
        more = f", and {others} more {'classes have' if others > 1 else 'class has'} few" if others else ""
        say(
            f"stoker: class {name!r} has {quantity(count, 'row')}{more}: collect more, merge classes, or leave those "
            "rows out"
        )


def _report_initials(names: list[str]) -> None:
    """Print which classes are the first letters of others, such as `N` beside `No`."""
    words: dict[str, list[str]] = {}
    for name in names:
        if len(word := name.strip()) > 1 and word.isalpha():
            words.setdefault(word[0].casefold(), []).append(name)
    letters = [name for name in names if len(name.strip()) == 1 and name.strip().isalpha()]
    pairs = [(one, words.get(one.strip().casefold(), [])) for one in letters]
    # Grades from A to F are no initials, though one of the classes may be called Absent.
    if pairs and all(len(whole) == 1 for _, whole in pairs):
        alike = ", ".join(f"{one!r} and {whole[0]!r}" for one, whole in pairs)
        say(f"stoker: classes {alike} look like the same class: spell them alike if they are one")


def _report_alike(names: list[str]) -> None:
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(" ".join(name.split()).casefold(), name)
        if other != name:
            say(
                f"stoker: classes {other!r} and {name!r} differ only in case or spaces, and are learned as two: spell "
                "them alike if they are one"
            )
            return


def are_uneven(labels: Array) -> bool:
    """Return whether some class is so rare that it would hardly count."""
    counts = np.unique(labels, return_counts=True)[1]
    return bool(counts.max() > _UNEVEN * counts.min())


def batch_size(rows: int, wanted: int) -> int:
    """Return a power of two so small that there are at least four held-out batches: half to validate, half to test."""
    most = max(1, int(rows * _HELD_OUT / 4))
    return int(2 ** int(np.log2(min(most, wanted))))


def list_files(folder: str, *endings: str) -> list[Path]:
    """List the files that are read from a folder with a folder for each class, in order.

    Raises:
        ArgumentError: the path is not a folder, or a class has no files.
    """
    root = local_tree(folder, endings)
    # The reader refuses a folder without class folders, and can say what else the folder may be.
    return [Path(file.path) for file in class_files(root, endings)] if class_folders(root) else []


def check_target(name: str, labels: Array) -> None:
    """Check that the numbers of the target can be learned.

    Raises:
        ArgumentError: some are infinite or too large, or all are too small.
    """
    what = f"target {name!r}"
    _check_size(what, labels, "correct these rows, or leave them out")
    if (value := _find_largest_if_small(labels, _SMALLEST_TARGET)) is not None:
        raise ArgumentError(
            f"{what} has values too small to be learned in float32, such as {value:g}: scale them up"
        )


def check_learnable_column(name: str, values: Array) -> None:
    """Check that the numbers of an input column can be learned from.

    Raises:
        ArgumentError: some are infinite or too large.
    """
    _check_size(
        f"column {name!r}", values, "correct these fields, or empty them (an empty field is a missing number)"
    )


def explain_too_small(values: Array) -> str | None:
    """Say why a network would see only zeros in an input column; None if it would not."""
    value = _find_largest_if_small(values, _SMALLEST)
    return (
        None if value is None else f"its values, such as {value:g}, are too small for float32: scale them up"
    )


def _check_size(what: str, values: Array, remedy: str) -> None:
    if values.dtype.kind != "f":
        return
    infinite = np.isinf(values)
    if infinite.any():
        raise ArgumentError(f"{what} has {_place(values, infinite, 'infinite value')}: {remedy}")
    large = np.abs(values) > _LARGEST
    if large.any():
        found = _place(values, large, "value")
        raise ArgumentError(f"{what} has {found}, too large to be learned from in float32: scale the column")


def _place(values: Array, found: Mask, noun: str) -> str:
    """Say how many there are, and which is the first."""
    row, count = int(np.argmax(found)), int(found.sum())
    return f"{quantity(count, noun)}, {'the first ' * (count > 1)}in row {row + 1:,} ({values[row]:g})"


def _find_largest_if_small(values: Array, least: float) -> float | None:
    """Return the largest value if all are nearer to zero than this, but not all are zero; otherwise None."""
    if values.dtype.kind != "f":
        return None
    largest = float(np.max(np.abs(values), initial=0.0, where=~np.isnan(values)))
    return largest if 0 < largest < least else None


def describe_values(words: Sequence[str]) -> str | None:
    """Say what the values of a column look like and how to write them, for a message; None for plain words."""
    some = [word.strip() for word in islice(words, _CHECKED) if word.strip()]
    dates = [word for word in some if _DATES.fullmatch(word)]
    if dates and len(dates) >= _MOST * len(some):
        return f"dates, such as {dates[0]!r}: write them as YYYY-MM-DD"
    plain = sum(bool(_PLAIN.fullmatch(word)) for word in some)
    for sign, form in _NUMBERS.items():
        found = [word for word in some if form.fullmatch(word)]
        if found and len(found) + plain >= _MOST * len(some):
            return f"numbers written with {sign!r}, such as {found[0]!r}: write them as plain numbers, such as 1234.5"
    return None
