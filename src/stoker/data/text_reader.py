"""Texts as a dataset of strings, or of word ids."""

from __future__ import annotations

import os

from stoker.data import paths as found
from stoker.data.cache import CachePlace
from stoker.data.class_folders import class_folders
from stoker.data.columns import from_store
from stoker.data.ingest import TableSource, identity, load_table
from stoker.data.order import Order
from stoker.data.splits import Split, make_datasets
from stoker.data.table_files import table_files
from stoker.data.tables import TableOptions, split_table
from stoker.data.text_files import CLASS, TEXT, Folders, Lines, TextColumn
from stoker.data.word_ids import WordIds
from stoker.errors import ArgumentError, whole_number
from stoker.tf_internals.types import Dataset, Tensor


@found.parses_as_files_arrive
def text(
    paths: found.Paths,
    batch_size: int = 32,
    shuffle: bool = True,
    seed: int = 0,
    validation_split: Split = None,
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
    cache: CachePlace = None,
    group: str | None = None,
    time: str | None = None,
    cache_bytes: int | None = None,
) -> Dataset:
    """Read texts in batches: `(strings, class index)` from a folder for each class, only strings from files of lines.

    Args:
        paths: a folder with a folder of `.txt` files for each class, or files with one text per line; with `column`,
            CSV, Parquet or JSON lines files.
        column: the column of a table that holds the texts.
        label: the column of their classes or numbers; None gives the texts alone.
        max_tokens: give word ids instead of strings, from a vocabulary of at most this many words of the training
            texts. `ds.vectorization` is the `TextVectorization` layer that makes them. Id 0 is padding, id 1 unknown.
        max_length: cut texts off after this many words.
        group: a column of the table: texts with the same value in it are held out together.
        time: a column of the table: the latest texts are held out.

    With ids, texts of similar length share a batch: the texts of fifty batches are sorted by length, and their batches
    shuffled. The other arguments are those of `csv`.

    Returns:
        A `tf.data.Dataset` with `rows` and `class_names`; two of them with `validation_split`.

    Raises:
        ArgumentError: a file or an argument is invalid.
    """
    if max_tokens is not None:
        max_tokens = whole_number("max_tokens", max_tokens, 3)
    if max_length is not None:
        max_length = whole_number("max_length", max_length, 1)
    if column is None:
        for name, value in (("label", label), ("group", group), ("time", time)):
            if value is not None:
                raise ArgumentError(
                    f"{name}={value!r} is a column of a table: name that of the texts with column="
                )
        source = _source(paths, encoding, cache_bytes)
    else:
        rows = table_files(paths, sep, encoding, cache_bytes=cache_bytes)[1]
        source = _column(rows, column, label, group or time)
    columns = source.columns()
    reading = [encoding] if column is None else [encoding, sep, column, label, group or time]
    store = load_table(source, columns, reading, cache)
    labelled = any(one.name == CLASS for one in columns) and label_mode is not None
    passes = (batch_size, shuffle, seed, validation_split, shard, drop_remainder)
    named = CLASS if labelled else None
    options = TableOptions(*passes, named, label_mode=label_mode, cache=cache, group=group, time=time)
    table, parts = split_table(store, options, source.name, label or "")
    words = None
    if max_tokens is not None:
        key, state = identity(source, from_store(store), reading)
        words = WordIds.of(table, parts[0], max_tokens, key, state, cache)

    def give_strings(rows: Tensor) -> Tensor:
        batch = table.batch(rows)
        return (batch[0][TEXT], batch[1]) if labelled else batch[TEXT]

    def make(order: Order) -> Dataset:
        if words is None:
            dataset = order.dataset(give_strings)
        else:
            dataset = words.dataset(order, table.labels if labelled else None, max_length)
            dataset.vectorization, dataset.max_length = words.layer, max_length
        dataset.table = table
        return dataset

    return make_datasets(parts, make, table.features)


def _source(paths: found.Paths, encoding: str, cache_bytes: int | None) -> TableSource:
    if isinstance(paths, str | os.PathLike):
        paths = root = found.local_tree(paths, found.TEXTS, cache_bytes)
        if root.is_dir() and class_folders(root):
            return Folders(root, encoding)
    return Lines(found.files(paths, found.TEXTS, cache_bytes), encoding)


def _column(table: TableSource, column: str, label: str | None, divided_by: str | None) -> TableSource:
    if column == label:
        raise ArgumentError(f"column={column!r} and label={label!r} must be different columns")
    return TextColumn(table, column, label, divided_by)
