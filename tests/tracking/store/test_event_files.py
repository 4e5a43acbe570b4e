"""TensorBoard reads what we write, and we read what TensorFlow writes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from stoker.tracking.store.event_files import Scalar, read, write

VALUES = [1.5, -2.25, math.inf, -math.inf, 0.0, 3e38]


@pytest.mark.tensorflow
def test_tensorboard_reads_what_we_write(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    scalars = [Scalar("train/loss", step * 1000, 1e9 + step, value) for step, value in enumerate(VALUES)]
    scalars += [
        Scalar("größe", -1, 1e9, 7.0),
        Scalar("nan", 0, 1e9, math.nan),
        Scalar("large", 0, 1e9, 1e300),
    ]
    write(tmp_path / "events.out.tfevents.1.here", iter(scalars), started=1e9)
    shown = accumulator.EventAccumulator(str(tmp_path))
    shown.Reload()
    assert sorted(shown.Tags()["scalars"]) == ["größe", "large", "nan", "train/loss"]
    loss = shown.Scalars("train/loss")
    assert [(one.step, one.wall_time) for one in loss] == [(step * 1000, 1e9 + step) for step in range(6)]
    assert [one.value for one in loss] == pytest.approx(VALUES)
    assert math.isnan(shown.Scalars("nan")[0].value)
    assert shown.Scalars("large")[0].value == math.inf
    assert shown.Scalars("größe")[0].step == -1


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    scalars = [Scalar("loss", step, 1e9 + step, value) for step, value in enumerate(VALUES[:5])]
    path = tmp_path / "events"
    write(path, iter(scalars), started=1e9)
    assert list(read(path)) == scalars


def test_a_file_that_is_still_written_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    scalars = [Scalar("loss", step, 1e9, float(step)) for step in range(3)]
    path = tmp_path / "events"
    write(path, iter(scalars), started=1e9)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        found = list(read(path))
        assert found == scalars[: len(found)]
    assert len(found) == 2


def test_what_tensorflow_writes_is_read(tmp_path: Path) -> None:
    import tensorflow as tf

    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        for step, value in enumerate([0.5, 1.25]):
            tf.summary.scalar("new", value, step=step)
        tf.summary.histogram("histogram", [1.0, 2.0], step=0)
        tf.summary.text("text", "words", step=0)
    old = tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(tag="old", simple_value=4.0)])
    with tf.Graph().as_default():
        writer = tf.compat.v1.summary.FileWriter(str(tmp_path), filename_suffix=".old")
        writer.add_summary(old, 7)
        writer.close()
    found = [scalar for file in sorted(tmp_path.iterdir()) for scalar in read(file)]
    assert sorted((one.tag, one.step, one.value) for one in found) == [
        ("new", 0, 0.5),
        ("new", 1, 1.25),
        ("old", 7, 4.0),
    ]
