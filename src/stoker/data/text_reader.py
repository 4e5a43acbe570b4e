"""Texts as a dataset: strings, or the ids of their words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from stoker.data import paths as found
from stoker.data.class_folders import class_folders
from stoker.data.columns import Column
from stoker.data.ingest import Source, identity, stored
from stoker.data.labels import label_of
from stoker.data.order import Order
from stoker.data.splits import finished, orders
from stoker.data.table_files import table_files
from stoker.data.tables import Options, Table, divider
from stoker.data.text_files import CLASS, TEXT, Folders, Lines, TextColumn
from stoker.data.word_ids import Words
from stoker.errors import ArgumentError, check_local_path, whole_number


def text(
    paths: found.Paths,
    batch_size: int = 32,
    shuffle: bool = True,
    seed: int = 0,
    validation_split: float | tuple[float, ...] | None = None,
    *,
    column: str | None = None,
    label: str | None = None,
    max_tokens: int | None = None,
    max_length: int | None = None,
    label_mode: str = "auto",
    sep: str = ",",
    encoding: str = "utf8",
    shard: tuple[int, int] = (0, 1),
    drop_remainder: bool = False,
    cache: str | os.PathLike[str] | bool | None = None,
    group: str | None = None,
    time: str | None = None,
) -> Any:
    """Texts in batches: `(strings, class index)` of a folder for each class, strings alone of files of lines.

    Args:
        paths: a folder with a folder of `.txt` files for each class, or files with one text a line; with `column`, CSV,
            Parquet or JSON lines files.
        column: the column of a table that holds the texts.
        label: the column of their classes or numbers; None gives the texts alone.
        max_tokens: give ids of words instead of strings, from a vocabulary of at most so many words of the training
            texts: `ds.vectorization` is the `TextVectorization` layer that makes them. Id 0 pads, id 1 is unknown.
        max_length: cut ids off after so many words.
        group: a column of the table: texts with the same value in it are held out together.
        time: a column of the table: the latest texts are held out.

    With ids, texts of like length share a batch: fifty batches are drawn, sorted by length and shuffled among
    themselves. The other arguments are those of `csv`.

    Returns:
        A `tf.data.Dataset` with `rows` and `class_names`; two of them with `validation_split`.

    Raises:
        ArgumentError: a file or an argument that makes no sense.
    """
    if max_tokens is not None:
        max_tokens = whole_number("max_tokens", max_tokens, 3)
    if max_length is not None:
        max_length = whole_number("max_length", max_length, 1)
    if column is None:
        for name, value in (("label", label), ("group", group), ("time", time)):
            if value is not None:
                raise ArgumentError(
                    f"{name}={value!r} is a column of a table: say which holds the texts, column="
                )
        source = _source(paths, encoding)
    else:
        source = _column(paths, column, label, group or time, sep, encoding)
    columns = source.columns()
    reading = [encoding] if column is None else [encoding, sep, column, label, group or time]
    store = stored(source, columns, reading, cache)
    columns = [Column(**one) for one in store.meta["columns"]]
    named = CLASS if any(one.name == CLASS for one in columns) and label_mode is not None else None
    options = Options(
        label=named,
        batch_size=batch_size,
        shuffle=shuffle,
        seed=seed,
        validation_split=validation_split,
        shard=shard,
        label_mode=label_mode,
        drop_remainder=drop_remainder,
        cache=cache,
        group=group,
        time=time,
    )
    classes = label_of(store, columns[1], label_mode, source.name, label or "") if named else None
    parts = orders(store.rows, options, divider(store, columns, options, source.name))
    table = Table(store, columns, options, classes, parts[0])
    if max_tokens is None:

        def plain(order: Order) -> Any:
            dataset = order.dataset(lambda rows: _plain(table.batch(rows), labelled=named is not None))
            dataset.table = table
            return dataset

        return finished([plain(order) for order in parts], parts, table.features, plain)
    key, state = identity(source, columns, reading)
    words = Words.of(table, parts[0], max_tokens, key, state, cache)

    def vectorised(order: Order) -> Any:
        dataset = words.dataset(order, table.labels if named else None, max_length)
        dataset.table, dataset.vectorization, dataset.max_length = table, words.layer, max_length
        return dataset

    return finished([vectorised(order) for order in parts], parts, table.features, vectorised)


def _source(paths: Any, encoding: str) -> Source:
    if isinstance(paths, str | os.PathLike):
        check_local_path(paths)
        root = Path(paths).expanduser()
        if root.is_dir() and class_folders(root):
            return Folders(root, encoding)
    return Lines(found.files(paths, found.TEXTS), encoding)


def _column(
    paths: Any, column: str, label: str | None, divided_by: str | None, sep: str, encoding: str
) -> Source:
    if column == label:
        raise ArgumentError(f"column={column!r} and label={label!r} must be two columns")
    return TextColumn(table_files(paths, sep, encoding)[1], column, label, divided_by)


def _plain(batch: Any, *, labelled: bool) -> Any:
    return (batch[0][TEXT], batch[1]) if labelled else batch[TEXT]
