"""What is asked of any recipe, checked before a file is read or a directory made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from stoker.data.class_folders import is_text
from stoker.errors import ArgumentError, check_local_path, whole_number

# What NumPy takes for a seed, and Keras with it.
_LARGEST_SEED = 2**32 - 1


def path_of(data: Any) -> str:
    """The path that is to be read.

    Raises:
        ArgumentError: it is none: a frame, say, or a list; or one that cannot be written down.
    """
    if isinstance(data, str | os.PathLike) and isinstance(path := os.fspath(data), str):
        if not is_text(path):
            raise ArgumentError(
                f"data={os.fsencode(path)!r} is a path in bytes that are not UTF-8: rename it"
            )
        check_local_path(path)
        return path
    frame = "; write a frame to a file first, with to_parquet" if hasattr(data, "to_parquet") else ""
    raise ArgumentError(
        f"data must be the path of a file or a folder, or a glob, not {type(data).__name__}{frame}"
    )


def separator(sep: str | None, path: str) -> str:
    """Between the fields of a CSV file: what was said, or what the file's name says."""
    if sep is not None:
        return sep
    return "\t" if path.lower().endswith((".tsv", ".tsv.gz")) else ","


def check(*, epochs: Any, seed: Any, runs: Any, **columns: Any) -> None:
    """Refuse what no training could use.

    Args:
        epochs: the most there are, or None.
        seed: of all that is drawn.
        runs: the directory of all runs.
        columns: by argument: the name of a column, or None.

    Raises:
        ArgumentError: one of them makes no sense.
    """
    whole_number("seed", seed, 0, _LARGEST_SEED)
    if epochs is not None:
        whole_number("epochs", epochs, 1)
    if not isinstance(runs, str | os.PathLike):
        raise ArgumentError(f"runs={runs!r} must be the path of a directory")
    check_local_path(runs)
    if Path(runs).exists() and not Path(runs).is_dir():
        raise ArgumentError(f"runs={os.fspath(runs)!r} is a file: give the directory that runs are kept in")
    for name, column in columns.items():
        if column is not None and not isinstance(column, str):
            raise ArgumentError(f"{name}={column!r} must be the name of a column")
    if columns.get("group") is not None and columns.get("time_column") is not None:
        raise ArgumentError(
            f"group={columns['group']!r} and time_column={columns['time_column']!r}: rows are divided by one of them"
        )
