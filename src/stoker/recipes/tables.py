"""`stoker.recipes.table`: choose the settings of the program that learns from a table."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import stoker
from stoker.data.array_types import Array
from stoker.data.arrow_sources import Unfit
from stoker.data.columns import check_known
from stoker.data.features import Feature, Features
from stoker.data.odd_cells import check_missing
from stoker.data.table_files import table_files
from stoker.errors import ArgumentError
from stoker.recipes.arguments import RunRequest, check_columns, choose_separator, find_chosen_model, path_of
from stoker.recipes.baselines import BOOSTED, LINEAR
from stoker.recipes.beginning import begin
from stoker.recipes.data_checks import (
    LEAST_ROWS,
    are_uneven,
    batch_size,
    check_classes,
    check_learnable_column,
    check_target,
    count_classes,
    describe_values,
    explain_too_small,
    report_odd_classes,
)
from stoker.recipes.programs.table import Settings, read
from stoker.recipes.progress import say
from stoker.recipes.reading import describe_reading, print_reading
from stoker.recipes.rows import Rows, rows_of
from stoker.recipes.scores import Result
from stoker.recipes.winner import NETWORK
from stoker.tf_internals.types import Dataset
from stoker.units import quantity

# The names that `only` may have, and the report's names for them.
_MODELS = {"network": NETWORK, "linear": LINEAR, "trees": BOOSTED}
_MOST_COLUMNS = 1_000
_FEW_VALUES = 20
# The number of rows that are checked before training.
_CHECKED = 200_000
# Numbers that correlate more than this differ only in unit and rounding.
_RULER = 0.9999
# `id`, `customer_id`, `order id`, `userId`, `ID`.
_ID = re.compile(r"(?i:(^|[_ .-])id$)|[a-z]I[dD]$")
_LIKE_IDS = "nearly every row has a different value, like an id"
# Measurements have fewer digits than this.
_LONG = 10**12
# How many texts are checked for numbers and dates.
_FEW_TEXTS = 1_000
# With more inputs, a periodic network would be mostly periodic features.
_MOST_PERIODIC = 200


def table(
    data: str | os.PathLike[str],
    target: str,
    *,
    task: str | None = None,
    columns: Sequence[str] | None = None,
    sep: str | None = None,
    encoding: str = "utf8",
    missing: str | Sequence[str] = (),
    exclude: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    strict: bool = False,
    group: str | None = None,
    time_column: str | None = None,
    epochs: int | None = None,
    time: str | float | None = None,
    only: str | None = None,
    all_rows: bool = False,
    seed: int = 0,
    runs: str = "runs",
    name: str | None = None,
    fresh: bool = False,
    eject: str | None = None,
    overwrite: bool = False,
    started_ns: int | None = None,
) -> Result | None:
    """Train models that predict a column of a table, compare them, and export the best one.

    Args:
        data: CSV, Parquet or JSON lines: a file, a glob or a folder.
        target: the column to predict.
        task: "classes" or "numbers"; by default, what the target suggests.
        columns: the columns to learn from; all by default.
        sep: the separator of a CSV file; by default a comma, or a tab in `.tsv` files.
        encoding: the encoding of a CSV file.
        missing: a text that stands for a missing value, such as "?", or several.
        exclude: columns not to learn from.
        types: the kinds of columns for which Stoker infers the wrong one, such as `{"day": "date"}`.
        strict: refuse cells that cannot be read, uneven rows and rows without a target, instead of leaving them out.
        group: a column: rows with the same value, such as those of a customer, are held out together. It is not an
            input.
        time_column: a column of dates or numbers: the latest rows are held out. It is not an input.
        epochs: the most epochs to train; training ends earlier when it no longer helps.
        time: the longest that everything may take, from this call to the finished bundle: seconds, or "10min".
        only: export this model, "network", "linear" or "trees", even if another one is better.
        all_rows: once the model is chosen and scored, train it again on all rows, the held-out ones too, and export
            that one.
        seed: the seed of the split, the shuffles and the initial weights.
        runs: the directory of all runs.
        name: the name of this run's directory; derived from the request by default.
        fresh: start over, even if the same run was trained before.
        eject: write the program to this file instead of running it.
        overwrite: replace that file if it exists.
        started_ns: when `time` began, as `time.monotonic_ns` counts, if before this call.

    Returns:
        The result: scores, baselines, the path of the bundle; None with `eject`.

    Raises:
        ArgumentError: the data or an argument is invalid.
    """
    path = path_of(data)
    if not isinstance(target, str):
        raise ArgumentError(f"target={target!r} must be the name of the column to predict")
    run = RunRequest(
        epochs=epochs,
        time=time,
        seed=seed,
        runs=runs,
        name=name,
        fresh=fresh,
        eject=eject,
        overwrite=overwrite,
        **({} if started_ns is None else {"started_ns": started_ns}),
    )
    exported = find_chosen_model(only, _MODELS)
    check_columns(group=group, time_column=time_column)
    sep = choose_separator(sep, path)
    absent = check_missing(missing)
    kind, source, found = table_files(path, sep, encoding, absent, lenient=not strict)
    known = source.columns()
    names = [column.name for column in known]
    target = _find_name(names, target)
    chosen = _choose_columns(names, columns, exclude, target)
    count = len(names if columns is None else columns)
    if count > _MOST_COLUMNS:
        raise ArgumentError(
            f"{path} has {count:,} columns, but the recipe takes at most {_MOST_COLUMNS:,}: choose some with --columns"
        )
    asked = Settings(
        data=path,
        target=target,
        run="",
        format=kind,
        sep=sep,
        encoding=encoding,
        missing=absent,
        group=group,
        time_column=time_column,
        types=tuple((types or {}).items()),
        lenient=not strict,
        left_out=(
            *((name, "as asked") for name in exclude),
            *(
                (one.name, one.reason)
                for one in known
                if isinstance(one, Unfit) and one.name in (chosen or names)
            ),
        ),
        columns=chosen,
        seed=seed,
        only=exported,
        all_rows=all_rows,
        time_s=run.time_s,
    )
    given = columns is not None
    return begin("table", _choose(asked, task, given), run, found, (Path(path).name.split(".")[0], target))


def _find_name(names: list[str], wanted: str) -> str:
    """Return the name as it appears in the file, where it may have spaces around it."""
    alike = [name for name in names if name.strip("\ufeff \t") == wanted.strip()]
    return alike[0] if wanted not in names and len(alike) == 1 else wanted


def _choose_columns(
    names: list[str], columns: Sequence[str] | None, exclude: Sequence[str], target: str
) -> tuple[str, ...] | None:
    """Return the columns to read, with the target; None for all."""
    for name in exclude:
        check_known(names, name, "exclude")
        if name == target:
            raise ArgumentError(f"exclude={name!r} is the target: name another column")
    if columns is None and not exclude:
        return None
    kept = [name for name in (names if columns is None else columns) if name not in exclude]
    return (*kept, *(() if target in kept else (target,)))


def _choose(asked: Settings, task: str | None, given: bool) -> Settings:
    """Return the settings that fit the data; `given` columns are all kept."""
    if task not in (None, "classes", "numbers"):
        raise ArgumentError(f"task={task!r} must be 'classes' or 'numbers'")
    whole = _read(asked)
    if whole.rows < LEAST_ROWS:
        raise ArgumentError(
            f"{asked.data} has {quantity(whole.rows, 'row')}: a recipe needs {LEAST_ROWS} or more, to hold some out"
        )
    rows = rows_of(whole, most=_CHECKED)
    if whole.class_names is None:
        check_target(asked.target, rows.labels)
    classes = _has_classes(asked.target, whole, rows, task)
    kept, left_out = _columns(asked, whole, rows, given)
    for name in kept:
        check_learnable_column(name, rows.inputs[name])
    counted = count_classes(rows.labels, whole.class_names) if classes else []
    print_reading(describe_reading(whole.features, whole.rows, asked.target, left_out, classes=counted))
    width = len(kept) + sum(min(33, len(whole.features[name].vocabulary or ())) for name in kept)
    balanced = classes and are_uneven(rows.labels)
    if classes:
        report_odd_classes(rows.labels, whole.class_names)
    _report_leaks(kept, whole.features, rows, classes)
    chosen = replace(
        asked,
        columns=None if len(kept) == len(whole.features) and asked.columns is None else (*kept, asked.target),
        left_out=left_out,
        classes=classes,
        balanced=balanced,
        networks=("plain", "periodic") if width <= _MOST_PERIODIC else ("plain",),
        # About two hundred steps per epoch.
        batch_size=batch_size(whole.rows, min(512, max(16, whole.rows // 200))),
    )
    if asked.group or asked.time_column:
        # Fail now rather than after training if the rows cannot be split that way.
        read(chosen)
    return chosen


def _read(asked: Settings) -> Dataset:
    options = {"sep": asked.sep, "encoding": asked.encoding} if asked.format == "csv" else {}
    with warnings.catch_warnings():
        # The recipe itself reports rare classes once it knows that they are classes.
        warnings.simplefilter("ignore", stoker.data.DataWarning)
        return getattr(stoker.data, asked.format)(
            asked.data,
            label=asked.target,
            batch_size=4096,
            columns=asked.columns,
            missing=asked.missing,
            types=dict(asked.types),
            lenient=asked.lenient,
            **options,
        )


def _explain_text(target: str, whole: Dataset) -> str:
    """Say why a target whose cells are mostly numbers or dates stayed text, and what to do; empty for other targets."""
    how = whole.features.found.get("how", {}).get(target)
    if how is None:
        return ""
    if "different units" in how:
        return f": {how}; convert them to one"
    return f": {how}; to leave their rows out, read it with types={{{target!r}: 'number'}}"


def _has_classes(target: str, whole: Dataset, rows: Rows, task: str | None) -> bool:
    """Return whether the target is a class."""
    if whole.class_names is None:
        values = np.unique(rows.labels)
        steps = bool(np.all(values == np.round(values)))
        classes = task == "classes" or (
            task is None and steps and len(values) <= min(_FEW_VALUES, len(rows) // 10)
        )
    else:
        if task != "classes" and (form := describe_values([str(one) for one in whole.class_names])):
            raise ArgumentError(
                f"target {target!r} looks like {form}; if they are classes, give task='classes'"
            )
        if task == "numbers":
            why = _explain_text(target, whole)
            raise ArgumentError(
                f"task='numbers': target {target!r} holds text{why or '; leave task out to learn classes'}"
            )
        values, classes = np.unique(rows.labels), True
    if classes or len(values) < 2:
        why = "" if whole.class_names is None else _explain_text(target, whole)
        check_classes(f"target {target!r}", rows.labels, whole.class_names, why)
    return classes


def _columns(
    asked: Settings, whole: Dataset, rows: Rows, given: bool
) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """Return the columns worth learning from, and the others with the reason why they are not."""
    kept, left_out = [], list(asked.left_out)
    for name in whole.features:
        if name in (asked.group, asked.time_column):
            continue
        why = _explain_useless(name, rows.inputs[name], whole.features[name].kind)
        form = describe_values(_list_words(whole.features[name], rows.inputs[name]))
        if form is not None and why in (None, _LIKE_IDS):
            fate = "is left out" if why and not given else "is read as words"
            say(f"stoker: column {name!r} {fate}: it looks like {form}")
        if why is None or given:
            kept.append(name)
        else:
            left_out.append((name, why))
    if not kept:
        raise ArgumentError(
            f"{asked.data} has no column to learn {asked.target!r} from: all are constant, empty or ids"
        )
    return kept, tuple(left_out)


def _list_words(feature: Feature, values: Array) -> list[str]:
    """List different values of a column of words; none for numbers."""
    if feature.kind == "text":
        return [value.decode("utf-8", "replace") for value in values[:_FEW_TEXTS]]
    return list(feature.vocabulary or ())[1:]


def _report_leaks(kept: list[str], features: Features, rows: Rows, classes: bool) -> None:
    """Print columns that give the target away, usually because they were recorded together with it."""
    gives_away = _names_classes if classes else _is_linear_in
    for name in kept:
        if features[name].kind != "text" and gives_away(rows.inputs[name], rows.labels):
            say(
                f"stoker: column {name!r} gives the target away by itself: leave it out (--exclude) if it is not "
                "known when the model predicts"
            )


def _names_classes(values: Array, labels: Array) -> bool:
    """Return whether each value belongs to just one class: few values, or a separate range of numbers per class."""
    found, codes = np.unique(values, return_inverse=True)
    codes, classes = codes.reshape(-1), np.unique(labels, return_inverse=True)[1]
    count = classes.max() + 1
    if len(np.unique(codes * count + classes)) != len(found):
        return False
    if len(found) <= len(labels) / LEAST_ROWS:
        return True
    ranges = 1 + np.count_nonzero(np.diff(classes[np.argsort(codes)]))
    return bool(values.dtype.kind in "fiu" and ranges == count <= len(labels) / LEAST_ROWS)


def _is_linear_in(values: Array, labels: Array) -> bool:
    """Return whether the numbers lie on a straight line with those of the target."""
    if values.dtype.kind not in "fiu":
        return False
    there = np.isfinite(values)
    if there.sum() < LEAST_ROWS or np.ptp(values[there]) == 0:
        return False
    return bool(abs(np.corrcoef(values[there], labels[there])[0, 1]) > _RULER)


def _explain_useless(name: str, values: Array, kind: str) -> str | None:
    """Say why a column is not worth learning from; None if it is."""
    if values.dtype.kind == "f" and np.isnan(values).all():
        return "all its values are missing"
    if (small := explain_too_small(values)) is not None:
        return small
    first = values[0]
    if np.all(values == first) or (kind == "category" and len(np.unique(values)) == 1):
        return "all its values are the same"
    if kind == "category" and len(np.unique(values)) > 0.95 * len(values):
        return _LIKE_IDS
    if kind == "text" and _are_codes(values):
        return _LIKE_IDS
    if kind == "whole" and len(values) > 1 and np.all(np.abs(np.diff(values)) == 1):
        return "it counts the rows"
    if kind == "whole" and np.max(np.abs(values)) >= _LONG and len(np.unique(values)) == len(values):
        return "every row has a different long number, like an id"
    if kind == "whole" and _ID.search(name) and len(np.unique(values)) == len(values):
        return "every row has a different number, and its name says that it is an id"
    return None


def _are_codes(values: Array) -> bool:
    """Return whether texts are single words that hardly repeat, such as UUIDs."""
    words = sum(len(value.split()) for value in values)
    return bool(words < 1.5 * len(values) and len(np.unique(values)) > 0.95 * len(values))
