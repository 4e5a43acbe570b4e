"""Every reader goes through its rows in fair orders, however many shards there are."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import stoker
from tests.chance import assert_fair_orders
from tests.data.test_tar import npy, write

ROWS, EPOCHS = 12, 60
# Takes a directory, and gives what reads the rows from it; and what finds the numbers of rows in a batch.
Reader = tuple[Callable[..., Any], Callable[[Any], Any]]


def _column(batch: Any) -> Any:
    return batch["id"]


def _frame() -> Any:
    import pandas as pd

    return pd.DataFrame({"id": np.arange(ROWS)})


def _csv(directory: Path) -> Reader:
    _frame().to_csv(directory / "t.csv", index=False)
    return (lambda **options: stoker.data.csv(directory / "t.csv", **options)), _column


def _parquet(directory: Path) -> Reader:
    _frame().to_parquet(directory / "t.parquet")
    return (lambda **options: stoker.data.parquet(directory / "t.parquet", **options)), _column


def _jsonl(directory: Path) -> Reader:
    (directory / "t.jsonl").write_text("".join(json.dumps({"id": row}) + "\n" for row in range(ROWS)))
    return (lambda **options: stoker.data.jsonl(directory / "t.jsonl", **options)), _column


def _of_frame(directory: Path) -> Reader:
    return (lambda **options: stoker.data.frame(_frame(), **options)), _column


def _sql(directory: Path) -> Reader:
    with sqlite3.connect(directory / "t.db") as database:
        _frame().to_sql("t", database, index=False)
    database.close()
    return (lambda **options: stoker.data.sql(directory / "t.db", "select id from t", **options)), _column


def _arrays(directory: Path) -> Reader:
    return (lambda **options: stoker.data.arrays(np.arange(ROWS), **options)), lambda batch: batch


def _text(directory: Path) -> Reader:
    (directory / "t.txt").write_text("".join(f"{row}\n" for row in range(ROWS)))
    return (lambda **options: stoker.data.text(directory / "t.txt", **options)), (
        lambda batch: tf.strings.to_number(batch, tf.int64)
    )


def _images(directory: Path) -> Reader:
    (directory / "a").mkdir()
    for row in range(ROWS):
        image = tf.io.encode_png(tf.fill([4, 4, 3], tf.constant(row, tf.uint8)))
        (directory / "a" / f"{row:02}.png").write_bytes(image.numpy())
    return (lambda **options: stoker.data.images(directory, **options)), lambda batch: batch[0][:, 0, 0, 0]


def _tar(directory: Path) -> Reader:
    samples = {f"{row:02}": {"npy": npy(np.array([row], np.int64))} for row in range(ROWS)}
    write(directory / "t.tar", samples)
    return (lambda **options: stoker.data.tar(directory / "t.tar", **options)), lambda batch: batch["npy"][
        :, 0
    ]


def _tfrecord(directory: Path) -> Reader:
    for number in range(3):
        with tf.io.TFRecordWriter(str(directory / f"{number}.tfrecord")) as file:
            for row in range(number, ROWS, 3):
                value = tf.train.Feature(int64_list=tf.train.Int64List(value=[row]))
                features = tf.train.Features(feature={"id": value})
                file.write(tf.train.Example(features=features).SerializeToString())
    return (lambda **options: stoker.data.tfrecord(directory / "*.tfrecord", **options)), _column


READERS = [_csv, _parquet, _jsonl, _of_frame, _sql, _arrays, _text, _images, _tar, _tfrecord]


@pytest.mark.slow
@pytest.mark.parametrize("make", READERS, ids=lambda make: make.__name__.strip("_"))
def test_orders_of_a_reader_are_fair(make: Any, tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    read, numbers = make(tmp_path / "rows")
    options = tf.data.Options()
    # Its model grows with every pass of a `repeat`.
    options.autotune.enabled = False
    for shards in (1, 2, 3):
        orders = np.full((EPOCHS, ROWS), -1)
        for index in range(shards):
            part = read(batch_size=ROWS, shuffle=True, seed=11, shard=(index, shards))
            orders[:, index::shards] = [
                numbers(batch).numpy() for batch in part.repeat(EPOCHS).with_options(options)
            ]
        assert np.array_equal(np.sort(orders), np.broadcast_to(np.arange(ROWS), orders.shape))
        assert len(np.unique(orders, axis=0)) == EPOCHS
        assert_fair_orders(orders)
