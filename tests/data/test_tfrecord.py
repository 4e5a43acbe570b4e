"""TFRecord files against parsing one record at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError


def _example(number: int) -> bytes:
    feature = {
        "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
        "pair": tf.train.Feature(float_list=tf.train.FloatList(value=[number / 2, 1.0])),
        "some": tf.train.Feature(int64_list=tf.train.Int64List(value=range(number % 4))),
        "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"\xff%d" % number])),
    }
    data: bytes = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    return data


def _write(path: Path, numbers: range, compression: str = "") -> None:
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for number in numbers:
            writer.write(_example(number))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    for shard in range(4):
        _write(tmp_path / f"{shard}.tfrecord", range(shard * 25, shard * 25 + 25))
    return tmp_path


def _ids(dataset: Any) -> list[int]:
    return [int(one) for inputs in dataset for one in inputs["id"]]


def test_records_are_those_parsed_one_by_one(shards: Path) -> None:
    dataset = stoker.data.tfrecord(shards, label="id", batch_size=8)
    assert dataset.rows == 100
    assert int(dataset.cardinality()) == 13
    assert dataset.spec["pair"].shape == [2]
    assert isinstance(dataset.spec["some"], tf.io.RaggedFeature)
    rows = tf.data.TFRecordDataset(sorted(str(path) for path in shards.glob("*.tfrecord")))
    expected = [tf.io.parse_single_example(record, dataset.spec) for record in rows]
    found = [(inputs, label) for inputs, label in dataset]
    assert np.array_equal(np.concatenate([label for _, label in found]), [one["id"] for one in expected])
    for name in ("pair", "name"):
        assert np.array_equal(
            np.concatenate([x[name] for x, _ in found]), [one[name].numpy() for one in expected]
        )
    ragged = [row.tolist() for inputs, _ in found for row in inputs["some"].numpy()]
    assert ragged == [one["some"].numpy().tolist() for one in expected]


def test_gzip_and_shuffled_passes(tmp_path: Path) -> None:
    _write(tmp_path / "a.tfrecord.gz", range(60), "GZIP")
    dataset = stoker.data.tfrecord(tmp_path, batch_size=16, shuffle=True, seed=4)
    first, second = _ids(dataset), _ids(dataset)
    assert sorted(first) == sorted(second) == list(range(60))
    assert first != second
    again = stoker.data.tfrecord(tmp_path, batch_size=16, shuffle=True, seed=4)
    assert [_ids(again), _ids(again)] == [first, second]


@pytest.mark.parametrize("shuffle", [False, True])
def test_shards_share_out_the_records(shards: Path, shuffle: bool) -> None:
    parts = [stoker.data.tfrecord(shards, shard=(index, 3), shuffle=shuffle) for index in range(3)]
    assert [part.rows for part in parts] == [34, 33, 33]
    assert sorted(one for part in parts for one in _ids(part)) == list(range(100))


def _plain(path: Path, lengths: list[int]) -> None:
    """Records with a number each, their place in the file, as often as is said."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for place, length in enumerate(lengths):
            numbers = tf.train.Feature(int64_list=tf.train.Int64List(value=[place] * length))
            example = tf.train.Example(features=tf.train.Features(feature={"id": numbers}))
            writer.write(example.SerializeToString())


def test_records_are_shuffled_through_a_buffer(tmp_path: Path) -> None:
    _plain(tmp_path / "a.tfrecord", [1] * 20_000)
    dataset: Any = stoker.data.tfrecord(tmp_path, batch_size=1000, shuffle=True, seed=1)
    found = np.concatenate([inputs["id"].numpy() for inputs in dataset])
    assert sorted(found) == list(range(20_000))
    # How many records early one comes: at most all that are with it in the buffer.
    assert 16_300 < max(found - np.arange(20_000)) < 16_384


def test_the_spec_is_that_of_the_first_hundred_records_of_the_first_file(tmp_path: Path) -> None:
    _plain(tmp_path / "a.tfrecord", [1] * 99 + [2])
    assert isinstance(stoker.data.tfrecord(tmp_path / "a.tfrecord").spec["id"], tf.io.RaggedFeature)
    _plain(tmp_path / "b.tfrecord", [1] * 100 + [2])
    with pytest.raises(
        ArgumentError, match="record 101: feature id has 2 values, but 1 in the records before"
    ):
        stoker.data.tfrecord(tmp_path / "b.tfrecord")
    _plain(tmp_path / "c.tfrecord", [1] * 5)
    with pytest.raises(
        ArgumentError, match=r"a\.tfrecord, record 100: feature id has 2 values, but 1 in the"
    ):
        stoker.data.tfrecord([tmp_path / "c.tfrecord", tmp_path / "a.tfrecord"])


def test_bad_files(tmp_path: Path) -> None:
    _write(tmp_path / "a.tfrecord", range(300))
    whole = (tmp_path / "a.tfrecord").read_bytes()
    (tmp_path / "a.tfrecord").write_bytes(whole[:-7])
    with pytest.raises(ArgumentError, match=r"a\.tfrecord is damaged or cut off"):
        stoker.data.tfrecord(tmp_path / "a.tfrecord")
    with tf.io.TFRecordWriter(str(tmp_path / "b.tfrecord")) as writer:
        writer.write(b"\xff\xff not an example")
    with pytest.raises(ArgumentError, match=r"not tf\.train\.Example"):
        stoker.data.tfrecord(tmp_path / "b.tfrecord")
    _write(tmp_path / "c.tfrecord", range(3))
    with pytest.raises(ArgumentError, match="did you mean 'name'"):
        stoker.data.tfrecord(tmp_path / "c.tfrecord", label="nam")
    _write(tmp_path / "d.tfrecord", range(0))
    with pytest.raises(ArgumentError, match="has no records"):
        stoker.data.tfrecord(tmp_path / "d.tfrecord")


def _misfit(path: Path, odd: dict[str, Any], features: dict[str, Any] | None = None) -> str:
    plain = {"id": tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))}
    plain["pair"] = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(700):
            feature = {**plain, **(odd if number == 650 else {})}
            kept = {name: one for name, one in feature.items() if one is not None}
            writer.write(tf.train.Example(features=tf.train.Features(feature=kept)).SerializeToString())
    with pytest.raises(ArgumentError) as caught:
        stoker.data.tfrecord(path, features)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_late_record_that_does_not_fit_is_named_before_training(tmp_path: Path) -> None:
    path = tmp_path / "t.tfrecord"
    decimal = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0]))
    three = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0, 3.0]))
    assert "record 651: feature id is float32, but int64 in the records before" in _misfit(
        path, {"id": decimal}
    )
    assert "record 651: feature pair has 3 values, but 2 in the records before" in _misfit(
        path, {"pair": three}
    )
    assert "record 651: feature id is missing, but int64 in the records before" in _misfit(path, {"id": None})
    spec = {"id": tf.io.FixedLenFeature([], tf.string)}
    assert "record 1: feature id is int64, but string in features=" in _misfit(path, {}, spec)
    assert stoker.data.tfrecord(path, {"pair": tf.io.RaggedFeature(tf.float32)}).rows == 700


def test_an_early_record_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(_example(1))
        text = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"two"]))
        writer.write(tf.train.Example(features=tf.train.Features(feature={"id": text})).SerializeToString())
    with pytest.raises(
        ArgumentError, match="record 2: feature id is string, but int64 in the records before"
    ):
        stoker.data.tfrecord(path)


def test_a_late_record_that_is_no_example_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(200):
            writer.write(_example(number))
        writer.write(b"\xff\xff not an example")
    with pytest.raises(ArgumentError, match=r"record 201 is not a tf\.train\.Example"):
        stoker.data.tfrecord(path)
