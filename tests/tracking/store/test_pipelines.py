"""The same steps over the same sources have the same hash, others another; what cannot be seen is only a form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.tracking.store import fingerprints

Make = Callable[[Path, int], Any]
"""A pipeline over sources in a directory; the number is what is changed in them."""


def _tensors(place: Path, change: int) -> Any:
    rows: Any = np.arange(40, dtype=np.float32)
    rows[7] += change
    return tf.data.Dataset.from_tensor_slices((rows, rows > 3)).shuffle(8, seed=1).batch(4).prefetch(2)


def _records(place: Path, change: int) -> Any:
    for name in ("a", "b"):
        with tf.io.TFRecordWriter(str(place / name)) as writer:
            writer.write(f"{name} {change}".encode())
    return tf.data.TFRecordDataset([str(place / "a"), str(place / "b")]).map(tf.strings.length)


def _texts(place: Path, change: int) -> Any:
    (place / "one.txt").write_text(f"{change}\nmore\n")
    return tf.data.TextLineDataset(str(place / "one.txt")).batch(2)


def _listed(place: Path, change: int) -> Any:
    for label in ("cat", "dog"):
        (place / label).mkdir(exist_ok=True)
        (place / label / "1").write_text(f"{label} {change}")
    return tf.data.Dataset.list_files(str(place / "*" / "*"), shuffle=False).map(tf.io.read_file)


def _renamed(place: Path, change: int) -> Any:
    (place / f"label-{change}").mkdir()
    (place / "other").mkdir()
    for name in (f"label-{change}", "other"):
        (place / name / "1").write_text("x")
    return tf.data.Dataset.list_files(str(place / "*" / "*"), shuffle=False)


def _captured(place: Path, change: int) -> Any:
    table = tf.constant([1, 2, 3 + change], tf.int64)

    @tf.function
    def looked_up(number: Any) -> Any:
        return tf.gather(table, number) if number < 3 else number

    zipped = (tf.data.Dataset.range(3), tf.data.Dataset.range(3).map(looked_up))
    return tf.data.Dataset.zip(zipped).interleave(lambda *one: tf.data.Dataset.from_tensors(one))


def _constants(place: Path, change: int) -> Any:
    return tf.data.Dataset.range(9).filter(lambda number: number > change).repeat(2)


def _sizes(place: Path, change: int) -> Any:
    return tf.data.Dataset.range(9 + change).batch(3)


def _table_file(place: Path, change: int) -> Any:
    (place / "rows.csv").write_text(f"a,b,y\n1,x,0\n2,z,1\n{3 + change},x,1\n")
    return stoker.data.csv(place / "rows.csv", label="y", batch_size=2, shuffle=True, cache=place / "cache")


def _words(place: Path, change: int) -> Any:
    for label in ("cat", "dog"):
        (place / label).mkdir(exist_ok=True)
        (place / label / "1.txt").write_text(f"a {label} or{' more' * change}")
    return stoker.data.text(place, batch_size=2, max_tokens=9, cache=place / "cache")


@pytest.mark.parametrize(
    "make",
    [_table_file, _words, _tensors, _records, _texts, _listed, _renamed, _captured, _constants, _sizes],
)
def test_it_is_known_by_its_sources_and_steps(make: Make, tmp_path: Path) -> None:
    found = []
    for name, change in (("here", 0), ("elsewhere", 0), ("changed", 1)):
        (tmp_path / name).mkdir()
        found.append(fingerprints.hash_data(make(tmp_path / name, change)))
    assert found[0].hash.startswith("sources:")
    assert found[0] == found[1]
    assert found[2].hash != found[0].hash


def test_of_much_only_a_part_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "WHOLE", 5)
    found = fingerprints.hash_data(_texts(tmp_path, 0))
    assert found.hash.startswith("sampled:")
    assert found.size == 7


def _generated() -> Any:
    return tf.data.Dataset.from_generator(lambda: iter([1]), output_signature=tf.TensorSpec((), tf.int32))


def _python() -> Any:
    return tf.data.Dataset.range(3).map(lambda number: tf.numpy_function(lambda one: one, [number], tf.int64))


def _table() -> Any:
    keys = tf.lookup.KeyValueTensorInitializer([1], [2])
    return tf.data.Dataset.from_tensors(1).map(tf.lookup.StaticHashTable(keys, 0).lookup)


@pytest.mark.parametrize("make", [_generated, _python, _table])
def test_what_cannot_be_seen_is_known_by_its_form(make: Callable[[], Any]) -> None:
    found = fingerprints.hash_data(make())
    assert found.hash.startswith("spec:")
    assert found.size is None
