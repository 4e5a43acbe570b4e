"""The readers of `stoker.data` against the usual ways, in rows per CPU-second of the process.

    make bench-data

Rounds are interleaved, so that whatever else the machine does hits all ways alike; a row says the median rate of each
way and the median, least and largest ratio over the rounds. CPU time is that of the whole process, all threads.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import tensorflow as tf

import stoker

BATCH = 1024
IMAGES = 4000
Way = Callable[[], int]
# Name, ours, the peer, and what was aimed at.
Case = tuple[str, Way, Way, float | None]


def drained(dataset: Any, batches: int | None = None) -> int:
    """Go through a dataset; how many rows came."""
    rows = 0
    for element in dataset if batches is None else dataset.take(batches):
        rows += int(tf.nest.flatten(element)[0].shape[0])
    return rows


def mixed(directory: Path, rows: int) -> dict[str, Path]:
    """The same table of 30 columns as CSV, Parquet and JSON lines."""
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {f"f{i}": random.normal(size=rows).round(5) for i in range(15)}
    columns |= {f"i{i}": random.integers(0, 10_000, rows) for i in range(7)}
    words = np.array([f"value_{i}" for i in range(50)])
    columns |= {f"c{i}": words[random.integers(0, 50, rows)] for i in range(8)}
    table = pa.table(columns)
    paths = {"csv": directory / "t.csv", "parquet": directory / "t.parquet", "jsonl": directory / "t.jsonl"}
    if paths["csv"].exists():
        return paths
    pyarrow.csv.write_csv(table, paths["csv"])
    pyarrow.parquet.write_table(table, paths["parquet"])
    with paths["jsonl"].open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in table.slice(0, rows // 4).to_pylist())
    return paths


def fresh(reader: Callable[..., Any], path: Path, cache: Path, **options: Any) -> Way:
    """The reader and its first epoch, with nothing cached."""

    def first() -> int:
        shutil.rmtree(cache, ignore_errors=True)
        return drained(reader(path, batch_size=BATCH, cache=cache, **options))

    return first


def later(dataset: Any) -> Way:
    return lambda: drained(dataset)


def text_line_way(path: Path) -> Way:
    defaults = [0.0] * 15 + [tf.constant(0, tf.int64)] * 7 + [""] * 8
    dataset = tf.data.TextLineDataset(str(path)).skip(1).batch(BATCH)
    dataset = dataset.map(
        lambda lines: tf.io.decode_csv(lines, defaults), num_parallel_calls=tf.data.AUTOTUNE
    )
    return lambda: drained(dataset.prefetch(tf.data.AUTOTUNE), 60)


def make_csv_way(path: Path) -> Way:
    return lambda: drained(tf.data.experimental.make_csv_dataset(str(path), BATCH, num_epochs=1), 20)


def json_way(path: Path) -> Way:
    first = json.loads(path.open().readline())
    signature = {
        name: tf.TensorSpec([], tf.string if isinstance(value, str) else tf.float32)
        for name, value in first.items()
    }

    def rows() -> Any:
        with path.open() as lines:
            for line in lines:
                yield json.loads(line)

    return lambda: drained(tf.data.Dataset.from_generator(rows, output_signature=signature).batch(BATCH), 5)


def tables(directory: Path, rows: int) -> list[Case]:
    """Readers of tables."""
    paths = mixed(directory, rows)
    cache = directory / "cache"
    shuffled = stoker.data.csv(paths["csv"], batch_size=BATCH, shuffle=True, seed=1, cache=directory / "kept")
    csv_first = fresh(stoker.data.csv, paths["csv"], cache)
    return [
        ("CSV, first epoch / make_csv_dataset", csv_first, make_csv_way(paths["csv"]), 12),
        ("CSV, later epochs / make_csv_dataset", later(shuffled), make_csv_way(paths["csv"]), 40),
        ("CSV, first epoch / decode_csv", csv_first, text_line_way(paths["csv"]), 1.3),
        (
            "Parquet, first epoch / our CSV",
            fresh(stoker.data.parquet, paths["parquet"], directory / "cache-p"),
            fresh(stoker.data.csv, paths["csv"], directory / "cache-c"),
            2,
        ),
        (
            "JSONL, first epoch / from_generator",
            fresh(stoker.data.jsonl, paths["jsonl"], directory / "cache-j"),
            json_way(paths["jsonl"]),
            30,
        ),
    ]


def whole_training(directory: Path, rows: int) -> list[Case]:
    """From the file to a trained model, three epochs: ours against pandas, get_dummies and `model.fit`."""
    path, cache = mixed(directory, rows)["csv"], directory / "cache-w"

    def compiled(inputs: Any, x: Any) -> Any:
        x = keras.layers.Dense(64, activation="relu")(x)
        model = keras.Model(inputs, keras.layers.Dense(1)(x))
        model.compile("adam", "mse")
        return model

    def ours() -> int:
        shutil.rmtree(cache, ignore_errors=True)
        train = stoker.data.csv(path, label="f0", batch_size=BATCH, shuffle=True, cache=cache)
        inputs = train.features.inputs()
        stoker.fit(compiled(inputs, train.features.encode(inputs)), train, epochs=3, verbose=0)
        return 3 * rows

    def peer() -> int:
        import pandas as pd

        frame = pd.get_dummies(pd.read_csv(path), dtype="float32")
        y = frame.pop("f0").to_numpy("float32")
        numbers = [name for name in frame if name[0] in "fi"]
        frame[numbers] = (frame[numbers] - frame[numbers].mean()) / frame[numbers].std()
        x = frame.to_numpy("float32")
        inputs = keras.Input((x.shape[1],))
        compiled(inputs, inputs).fit(x, y, batch_size=BATCH, epochs=3, verbose=0)
        return 3 * rows

    return [("CSV file to model, 3 epochs / pandas and model.fit", ours, peer, 1)]


def texts(directory: Path, rows: int) -> list[Case]:
    random = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(5000)])
    lines = [" ".join(words[random.integers(0, 5000, int(n))]) for n in random.integers(5, 60, 40_000)]
    path = directory / "t.txt"
    path.write_text("\n".join(lines))
    ours = stoker.data.text(path, BATCH, seed=1, max_tokens=5000, cache=directory / "cache-t")
    layer = keras.layers.TextVectorization(max_tokens=5000, output_sequence_length=60)
    layer.set_vocabulary(ours.vectorization.get_vocabulary())
    peer = tf.data.TextLineDataset(str(path)).map(layer, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH)
    return [("text, ids / TextVectorization by element", later(ours), lambda: drained(peer, 8), 15)]


def pictures(directory: Path, rows: int) -> list[Case]:
    """Images of 256 x 256 for a model that takes 224 x 224: cropped by us, resized by Keras.

    So many that decoding them, not building a pipeline, is what takes the time.
    """
    random = np.random.default_rng(0)
    for number in range(IMAGES):
        folder = directory / "photos" / ("a", "b")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        smooth = tf.image.resize(random.integers(0, 256, (32, 32, 3)).astype(np.float32), (256, 256))
        jpeg = tf.io.encode_jpeg(tf.cast(smooth, tf.uint8)).numpy()
        (folder / f"{number}.jpg").write_bytes(jpeg)
    root = directory / "photos"

    def peer(side: int) -> Way:
        options: dict[str, Any] = {"image_size": (side, side), "verbose": False, "seed": 1}
        return lambda: drained(keras.utils.image_dataset_from_directory(root, **options))

    def first() -> int:
        shutil.rmtree(directory / "cache-i", ignore_errors=True)
        return drained(stoker.data.images(root, cache=directory / "cache-i"))

    kept = stoker.data.images(root, cache=directory / "cache-k")
    cast = kept.map(lambda images, labels: (tf.cast(images[:, 16:240, 16:240], tf.float32), labels))
    return [
        ("images, first epoch, no resize / Keras, resized to 224", first, peer(224), 1.7),
        ("images, later epochs, crop to 224 and cast / Keras, resized to 224", later(cast), peer(224), 4),
        ("images, first epoch / Keras, no resize either", first, peer(256), None),
        ("images, later epochs, crop and cast / Keras, no resize either", later(cast), peer(256), None),
    ]


def records(directory: Path, rows: int) -> list[Case]:
    random = np.random.default_rng(0)
    path = directory / "t.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(150_000):
            feature = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=random.normal(size=10))),
                "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
                "word": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"word"])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    ours = stoker.data.tfrecord(path, batch_size=BATCH, cache=directory / "cache-r")
    peer = tf.data.TFRecordDataset(str(path)).map(
        lambda record: tf.io.parse_single_example(record, ours.spec), num_parallel_calls=tf.data.AUTOTUNE
    )
    return [("TFRecord / parse_single_example", later(ours), lambda: drained(peer.batch(BATCH), 15), 12)]


GROUPS: dict[str, Callable[[Path, int], list[Case]]] = {
    "tables": tables,
    "training": whole_training,
    "texts": texts,
    "images": pictures,
    "records": records,
}


def timed(way: Way) -> tuple[float, float]:
    """Rows per CPU-second and per second."""
    cpu, wall = time.process_time(), time.perf_counter()
    rows = way()
    return rows / (time.process_time() - cpu), rows / (time.perf_counter() - wall)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument(
        "--group", choices=GROUPS, help="one group of cases, without making the files of the others"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        groups = GROUPS if args.group is None else [args.group]
        cases = [case for group in groups for case in GROUPS[group](Path(name), args.rows)]
        cases = [case for case in cases if args.only in case[0]]
        rates: dict[str, list[tuple[Any, Any]]] = {case[0]: [] for case in cases}
        for _ in range(args.rounds):
            for title, ours, peer, _ in cases:
                rates[title].append((timed(ours), timed(peer)))
    print("| case | ours, rows/CPU-s | peer, rows/CPU-s | ratio (least to largest) | aim | wall ratio |")
    print("|---|---|---|---|---|---|")
    for title, _, _, aim in cases:
        measured = rates[title]
        ratios = sorted(one[0] / two[0] for one, two in measured)
        wall = statistics.median(one[1] / two[1] for one, two in measured)
        ours_rate = statistics.median(one[0] for one, _ in measured)
        peer_rate = statistics.median(two[0] for _, two in measured)
        print(
            f"| {title} | {ours_rate:,.0f} | {peer_rate:,.0f} | {statistics.median(ratios):.1f}x "
            f"({ratios[0]:.1f} to {ratios[-1]:.1f}) | {'' if aim is None else f'{aim:g}x'} | {wall:.1f}x |"
        )


if __name__ == "__main__":
    main()
