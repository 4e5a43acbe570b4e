"""The arguments that all recipes share, checked before a file is read or a directory is made."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from stoker import clock, storage
from stoker.data.class_folders import is_text
from stoker.errors import ArgumentError, check_local_path, whole_number

# The largest seed that NumPy and Keras take.
_LARGEST_SEED = 2**32 - 1
_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class RunOptions(TypedDict, total=False):
    """Keyword arguments of every recipe; `recipes.table` describes them."""

    epochs: int | None
    time: str | float | None
    seed: int
    runs: str
    name: str | None
    fresh: bool
    eject: str | None
    overwrite: bool
    started_ns: int


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A request to train, and where to keep the run; `recipes.table` describes the fields.

    Attributes:
        started_ns: when the run's time began, as `clock.now_ns` counts.

    Raises:
        ArgumentError: a field is invalid.
    """

    epochs: int | None = None
    time: str | float | None = None
    seed: int = 0
    runs: str = "runs"
    name: str | None = None
    fresh: bool = False
    eject: str | None = None
    overwrite: bool = False
    started_ns: int = field(default_factory=lambda: clock.now_ns())

    def __post_init__(self) -> None:
        whole_number("seed", self.seed, 0, _LARGEST_SEED)
        if self.epochs is not None:
            whole_number("epochs", self.epochs, 1)
        if not isinstance(self.runs, str | os.PathLike):
            raise ArgumentError(f"runs={self.runs!r} must be the path of a directory")
        check_local_path(self.runs)
        if Path(self.runs).exists() and not Path(self.runs).is_dir():
            raise ArgumentError(f"runs={os.fspath(self.runs)!r} is a file: give the directory for all runs")

    @property
    def time_s(self) -> float | None:
        """The longest that everything may take; None for no limit."""
        return None if self.time is None else seconds_of(self.time)


def seconds_of(time: str | float) -> float:
    """Return the seconds in `90`, `"90s"`, `"10m"`, `"10min"` or `"1.5h"`.

    Raises:
        ArgumentError: the value is zero or not a duration.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h)?\s*", str(time))
    found = float(match[1]) * _SECONDS[match[2] or "s"] if match else 0.0
    if found <= 0:
        raise ArgumentError(f"time={time!r}: give a duration such as '90s', '10min' or '1.5h'")
    return found


def path_of(data: str | os.PathLike[str]) -> str:
    """Return the path or the URL of the data.

    Raises:
        ArgumentError: the data is something else, such as a frame or a list, or a path that is not valid text.
    """
    if isinstance(data, str | os.PathLike) and isinstance(path := os.fspath(data), str):
        if not is_text(path):
            raise ArgumentError(f"data={os.fsencode(path)!r} is a path that is not UTF-8: rename it")
        if not storage.is_url(path):
            check_local_path(path)
        return path
    frame = "; write a frame to a file first, with to_parquet" if hasattr(data, "to_parquet") else ""
    raise ArgumentError(
        f"data must be the path of a file or a folder, or a glob, not {type(data).__name__}{frame}"
    )


def choose_separator(sep: str | None, path: str) -> str:
    """Return the separator of a CSV file: the caller's, or the one that the file's name suggests."""
    if sep is not None:
        return sep
    return "\t" if path.lower().endswith((".tsv", ".tsv.gz")) else ","


def check_columns(**columns: str | None) -> None:
    """Check arguments that name a column.

    Args:
        columns: the name of a column or None, by argument.

    Raises:
        ArgumentError: an argument is not a name, or both a group and a time are given.
    """
    for name, column in columns.items():
        if column is not None and not isinstance(column, str):
            raise ArgumentError(f"{name}={column!r} must be the name of a column")
    group, time_column = columns.get("group"), columns.get("time_column")
    if group is not None and time_column is not None:
        raise ArgumentError(f"group={group!r} and time_column={time_column!r}: split the rows by one of them")


def find_chosen_model(only: str | None, models: Mapping[str, str]) -> str | None:
    """Return the report's name of the model to export; None for the best one.

    Args:
        only: the model, as the caller names it.
        models: the report's names, by the names that callers may give.

    Raises:
        ArgumentError: there is no such model.
    """
    if only not in (None, *models):
        raise ArgumentError(f"only={only!r} must be {', '.join(map(repr, models))}")
    return None if only is None else models[only]
