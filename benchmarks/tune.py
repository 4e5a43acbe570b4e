"""Pipelines before and after `stoker.tune`, in rows per CPU-second of the process, and its predictions.

    make bench-tune

Each pipeline is tuned once. Then it and the tuned one are gone through in turn, some rounds of each: a row says the
median rates, the median ratio and the least and largest one, by CPU time and by the clock. The rate that the tuner
predicted, the median of its rounds, stands beside the median that was measured afterwards: by CPU time, which other
programs hardly change, and by the clock.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

import stoker

ROWS = 50_000
RANDOM = np.random.default_rng(0)


def measurements() -> Iterator[tuple[Any, int]]:
    """Rows as a user's generator gives them."""
    values = RANDOM.normal(size=(ROWS, 20)).astype(np.float32)
    for number, row in enumerate(values):
        yield row, number % 10


def from_generator(directory: Path) -> Any:
    signature = (tf.TensorSpec([20], tf.float32), tf.TensorSpec([], tf.int32))
    return tf.data.Dataset.from_generator(measurements, output_signature=signature).batch(256)


def generator_and_shuffle(directory: Path) -> Any:
    signature = (tf.TensorSpec([20], tf.float32), tf.TensorSpec([], tf.int32))
    rows = tf.data.Dataset.from_generator(measurements, output_signature=signature)
    return rows.map(lambda x, y: ((x - 0.5) / 2, tf.one_hot(y, 10))).shuffle(1000, seed=1).batch(64)


def scaled_rows() -> Any:
    rows = (RANDOM.normal(size=(ROWS, 20)).astype(np.float32), RANDOM.integers(0, 10, ROWS))
    return tf.data.Dataset.from_tensor_slices(rows).map(lambda x, y: (x / 255.0, tf.one_hot(y, 10)))


def element_wise(directory: Path) -> Any:
    # At most the map may gain: a cache of the batches would hide it.
    return scaled_rows().repeat().batch(64)


def shuffled(directory: Path) -> Any:
    return scaled_rows().shuffle(1000, seed=1).batch(64)


def lines(directory: Path) -> Any:
    path = directory / "t.csv"
    if not path.exists():
        rows = RANDOM.normal(size=(ROWS, 6)).round(4)
        path.write_text("\n".join(",".join(map(str, row)) for row in rows))
    read = tf.data.TextLineDataset(str(path)).shuffle(1000, seed=1)
    return read.map(lambda line: tf.stack(tf.io.decode_csv(line, [0.0] * 6))).batch(64)


def records(directory: Path) -> Any:
    path = str(directory / "t.tfrecord")
    if not Path(path).exists():
        with tf.io.TFRecordWriter(path) as writer:
            for row in RANDOM.normal(size=(ROWS // 2, 8)):
                feature = tf.train.Feature(float_list=tf.train.FloatList(value=row))
                example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
                writer.write(example.SerializeToString())
    spec = {"x": tf.io.FixedLenFeature([8], tf.float32)}
    read = tf.data.TFRecordDataset(path).shuffle(1000, seed=1)
    return read.map(lambda r: tf.io.parse_single_example(r, spec), num_parallel_calls=tf.data.AUTOTUNE).batch(
        64
    )


def pictures(directory: Path) -> Any:
    paths = [directory / f"{number}.jpg" for number in range(200)]
    for path in paths:
        if not path.exists():
            noise = RANDOM.integers(0, 255, (128, 128, 3), dtype=np.uint8)
            path.write_bytes(tf.io.encode_jpeg(noise).numpy())
    names = tf.data.Dataset.from_tensor_slices([str(path) for path in paths])

    def decoded(name: Any) -> Any:
        return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(name), channels=3), [96, 96])

    flipped = (
        names.map(decoded).shuffle(100, seed=1).map(lambda x: tf.image.random_flip_left_right(x, seed=3))
    )
    return flipped.batch(16)


def already_good(directory: Path) -> Any:
    rows = (RANDOM.normal(size=(ROWS, 20)).astype(np.float32), RANDOM.integers(0, 10, ROWS))
    batches = tf.data.Dataset.from_tensor_slices(rows).shuffle(1000, seed=1).batch(64)
    scaled = batches.map(lambda x, y: (x / 255.0, tf.one_hot(y, 10)), num_parallel_calls=tf.data.AUTOTUNE)
    return scaled.prefetch(tf.data.AUTOTUNE)


# What is aimed at, where something is.
CASES: dict[str, tuple[Callable[[Path], Any], float | None]] = {
    "from_generator of rows": (from_generator, 20),
    "generator, map, shuffle, batch": (generator_and_shuffle, 20),
    "element-wise map, batch": (element_wise, 6),
    "element-wise map, shuffle, batch": (shuffled, 6),
    "decode_csv by the line": (lines, 6),
    "parse_single_example": (records, None),
    "JPEG files, decode, resize, flip": (pictures, None),
    "already good": (already_good, 0.97),
}


def timed(iterator: Any, rows: int, seconds: float) -> tuple[float, float]:
    """Rows per CPU-second and per second of one round."""
    cpu, begin, count = time.process_time(), time.perf_counter(), 0
    for _ in iterator:
        count += rows
        if time.perf_counter() - begin > seconds:
            break
    return count / (time.process_time() - cpu), count / (time.perf_counter() - begin)


def measured(name: str, directory: Path, rounds: int, seconds: float) -> list[str]:
    make, aim = CASES[name]
    ds = make(directory)
    begin = time.perf_counter()
    tuned = stoker.tune(ds)
    took = time.perf_counter() - begin
    rows = tuned.tuning.rows_per_element or 1
    both = [iter(one.repeat()) for one in (ds, tuned)]
    for iterator in both:
        # The first epoch of a cache, and full shuffle buffers.
        timed(iterator, rows, seconds)
    found = [[timed(iterator, rows, seconds) for iterator in both] for _ in range(rounds)]
    before, after = ([round_[side][0] for round_ in found] for side in (0, 1))
    ratios = sorted(new / old for old, new in zip(before, after, strict=True))
    wall = statistics.median(new[1] / old[1] for old, new in found)
    truth = statistics.median(new[1] for _, new in found)
    predicted = (tuned.tuning.after or 0) * rows
    by_cpu = (tuned.tuning.after_per_cpu_s or 0) * rows
    return [
        name,
        f"{statistics.median(before):,.0f}",
        f"{statistics.median(after):,.0f}",
        f"{statistics.median(ratios):.2f}x ({ratios[0]:.2f} to {ratios[-1]:.2f})",
        "" if aim is None else f"{aim:g}x",
        f"{by_cpu:,.0f} / {statistics.median(after):,.0f} ({by_cpu / statistics.median(after) - 1:+.0%})",
        f"{predicted:,.0f} / {truth:,.0f} ({predicted / truth - 1:+.0%})",
        f"{tuned.tuning.gain:.1f}x / {wall:.1f}x",
        f"{took:.1f} s",
        ", ".join(change.name for change in tuned.tuning.changes) or "nothing",
    ]


def main() -> None:
    """Measure, and print a table for the README."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one round of one pipeline")
    parser.add_argument("--only", help="cases whose name has this in it")
    args = parser.parse_args()
    head = "case|before, rows/CPU-s|after, rows/CPU-s|ratio (least to largest)|aim"
    head += "|predicted / measured, rows/CPU-s|predicted / measured, rows/s|predicted / measured gain"
    head += "|tuning took|changed"
    print("|" + head + "|")
    print("|" + "---|" * len(head.split("|")))
    with tempfile.TemporaryDirectory() as directory:
        for name in CASES:
            if not args.only or args.only in name:
                print(
                    "|" + "|".join(measured(name, Path(directory), args.rounds, args.seconds)) + "|",
                    flush=True,
                )


if __name__ == "__main__":
    main()
