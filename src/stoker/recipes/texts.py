"""`stoker.recipes.text`: choose the settings of the program that learns the classes of texts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import stoker
from stoker.data.table_files import table_files
from stoker.errors import ArgumentError
from stoker.recipes.arguments import (
    RunOptions,
    RunRequest,
    check_columns,
    choose_separator,
    find_chosen_model,
    path_of,
)
from stoker.recipes.baselines import TFIDF
from stoker.recipes.beginning import begin
from stoker.recipes.data_checks import are_uneven, batch_size, check_classes, list_files, report_odd_classes
from stoker.recipes.programs.text import Settings, read
from stoker.recipes.rows import rows_of
from stoker.recipes.scores import Result
from stoker.recipes.winner import NETWORK

if TYPE_CHECKING:
    from typing_extensions import Unpack

# The names that `only` may have, and the report's names for them.
_MODELS = {"network": NETWORK, "linear": TFIDF}
_CHECKED = 50_000
_LEAST_LENGTH, _MOST_LENGTH = 16, 400


def text(
    data: str | os.PathLike[str],
    *,
    column: str | None = None,
    target: str | None = None,
    sep: str | None = None,
    encoding: str = "utf8",
    group: str | None = None,
    time_column: str | None = None,
    only: str | None = None,
    **options: Unpack[RunOptions],
) -> Result | None:
    """Train, compare and export a network that classifies texts.

    Args:
        data: a folder with a folder of `.txt` files for each class; with `column`, a CSV, Parquet or JSON lines table.
        column: the column that holds the texts.
        target: the column of their classes.
        encoding: the encoding of the files.
        group: a column of the table: texts with the same value in it are held out together.
        time_column: a column of the table: the latest texts are held out.
        only: export this model, "network" or "linear", even if another one is better.

    The other arguments, what is returned and what is raised are those of `table`.
    """
    path = path_of(data)
    run = RunRequest(**options)
    check_columns(column=column, target=target, group=group, time_column=time_column)
    sep = choose_separator(sep, path)
    if (column is None) != (target is None):
        raise ArgumentError("texts in a table need both --column (the texts) and --target (their classes)")
    if column is None and (group or time_column):
        raise ArgumentError(
            f"{'--group' if group else '--time-column'} names a column of a table: give a table, and --column"
        )
    if column is None and Path(path).is_file():
        raise ArgumentError(
            f"{path} is a file: for a table, give --column (the texts) and --target (their classes)"
        )
    found = list_files(path, ".txt") if column is None else table_files(path, sep, encoding)[2]
    asked = Settings(
        data=path,
        run="",
        column=column,
        target=target,
        sep=sep,
        encoding=encoding,
        group=group,
        time_column=time_column,
        only=find_chosen_model(only, _MODELS),
        seed=run.seed,
        time_s=run.time_s,
    )
    return begin("text", _choose(asked), run, found, [Path(path).name.split(".")[0]])


def _choose(asked: Settings) -> Settings:
    """Return the settings that fit the texts."""
    whole = stoker.data.text(
        asked.data,
        batch_size=1024,
        seed=asked.seed,
        column=asked.column,
        label=asked.target,
        sep=asked.sep,
        encoding=asked.encoding,
        label_mode="int",
    )
    if whole.class_names is None:
        raise ArgumentError(
            f"{asked.data} has texts without classes: put them into a folder for each class, or give a table with "
            "--column and --target"
        )
    rows = rows_of(whole, most=_CHECKED)
    check_classes(
        f"target {asked.target!r}" if asked.target else f"the class in {asked.data}",
        rows.labels,
        whole.class_names,
    )
    report_odd_classes(rows.labels, whole.class_names)
    lengths = [len(one.split()) for one in rows.inputs]
    if max(lengths) == 0:
        raise ArgumentError(f"{asked.data}: all texts are empty, so there is nothing to learn")
    longest = int(np.percentile(lengths, 95)) + 1
    chosen = replace(
        asked,
        max_length=min(_MOST_LENGTH, max(_LEAST_LENGTH, longest)),
        balanced=are_uneven(rows.labels),
        batch_size=batch_size(whole.rows, 16 if whole.rows < 2000 else 32 if whole.rows < 20_000 else 128),
    )
    if asked.group or asked.time_column:
        # Fail now rather than after training if the rows cannot be split that way.
        read(chosen)
    return chosen
