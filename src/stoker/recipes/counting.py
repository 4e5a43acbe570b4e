"""Checks of the classes of any recipe, and of the folders that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stoker.data.array_types import Array
from stoker.data.class_folders import class_files, class_folders
from stoker.data.labels import ClassName
from stoker.errors import ArgumentError
from stoker.recipes.progress import say
from stoker.units import counted

MOST_CLASSES = 1_000
LEAST_ROWS = 20
_UNEVEN = 4
# A class with fewer rows can hardly be both learned and tested.
_FEW = 10
_HELD_OUT = 0.3


def check_classes(what: str, labels: Array, names: Sequence[ClassName] | None) -> None:
    """Check that there are classes to learn, and rows to learn them from.

    Args:
        what: the target, for messages.
        labels: of the rows: indices of `names`, or the values themselves.
        names: of the classes.

    Raises:
        ArgumentError: there is only one class, too few rows, or too many classes for them.
    """
    if len(labels) < LEAST_ROWS:
        raise ArgumentError(
            f"{what} has {counted(len(labels), 'row')}: a recipe needs {LEAST_ROWS} or more, to hold some out"
        )
    values = np.unique(labels)
    if len(values) < 2:
        only = values[0].item() if names is None else names[int(values[0])]
        raise ArgumentError(f"{what} is {only!r} in every row: there is nothing to learn")
    if len(values) > MOST_CLASSES or len(values) > len(labels) / 2:
        raise ArgumentError(
            f"{what} has {len(values):,} different values in {len(labels):,} rows, too many for classes "
            f"(at most {MOST_CLASSES:,}, and two rows for each)"
        )


def report_odd_classes(labels: Array, names: Sequence[ClassName] | None) -> None:
    """Print which classes have very few rows, and which may be one class with two spellings."""
    values, counts = np.unique(labels, return_counts=True)
    shown = [value.item() if names is None else names[int(value)] for value in values]
    _report_few([(name, int(count)) for name, count in zip(shown, counts, strict=True) if count < _FEW])
    _report_alike([name for name in shown if isinstance(name, str)])


def _report_few(few: list[tuple[ClassName, int]]) -> None:
    if few:
        name, count = few[0]
        others = len(few) - 1
        more = f", and {others} more {'classes have' if others > 1 else 'class has'} few" if others else ""
        say(
            f"stoker: class {name!r} has {counted(count, 'row')}{more}: collect more, merge classes, or leave those "
            "rows out"
        )


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
    """Whether some class is so rare that it would hardly count."""
    counts = np.unique(labels, return_counts=True)[1]
    return bool(counts.max() > _UNEVEN * counts.min())


def batch_size(rows: int, wanted: int) -> int:
    """A power of two, so small that the held-out rows make at least four batches: half to validate, half to test."""
    most = max(1, int(rows * _HELD_OUT / 4))
    return int(2 ** int(np.log2(min(most, wanted))))


def files_below(folder: str, *endings: str) -> list[Path]:
    """The files that are read from a folder with a folder for each class, in order.

    Raises:
        ArgumentError: it is not a folder, or a class has no files.
    """
    root = Path(folder).expanduser()
    # The reader refuses a folder without class folders: it knows what else it could be.
    return [Path(file.path) for file in class_files(root, endings)] if class_folders(root) else []
