"""Readers, recipes and bundles take URLs: the rows of local files, from a server that fails again and again."""

from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker import cli as commands
from stoker.cli.serve import _parse_model
from stoker.errors import ArgumentError
from stoker.serve.bundle import locate
from tests.storage.buckets import Bucket
from tests.support import wait_until

pytestmark = pytest.mark.tensorflow
pytest.importorskip("pyarrow")


def _write_csv(root: Path) -> None:
    for part in range(3):
        rows = "".join(f"{part * 20 + row},{'ab'[row % 2]},{row / 7}\n" for row in range(20))
        (root / f"part-{part}.csv").write_text("number,kind,y\n" + rows)


def _write_parquet(root: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": list(range(50)), "y": [one / 3 for one in range(50)]}), root / "a.parquet")


def _write_jsonl(root: Path) -> None:
    (root / "a.jsonl").write_text("".join(f'{{"x": {one}, "y": {one % 3}}}\n' for one in range(40)))


def _write_records(root: Path) -> None:
    import tensorflow as tf

    for part in range(2):
        with tf.io.TFRecordWriter(str(root / f"{part}.tfrecord")) as writer:
            for row in range(20):
                value = tf.train.Feature(int64_list=tf.train.Int64List(value=[part * 20 + row]))
                example = tf.train.Example(features=tf.train.Features(feature={"x": value}))
                writer.write(example.SerializeToString())


def _write_tar(root: Path) -> None:
    with tarfile.open(root / "a.tar", "w") as archive:
        for row in range(10):
            for name, content in ((f"{row}.txt", f"text {row}"), (f"{row}.cls", f"{row % 2}")):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content.encode()))


def _write_texts(root: Path) -> None:
    for name in ("good", "bad"):
        (root / name).mkdir()
        for row in range(6):
            (root / name / f"{row}.txt").write_text(f"{name} text {row}")


def _write_images(root: Path) -> None:
    import tensorflow as tf

    draw = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (root / name).mkdir()
        for row in range(5):
            pixels = draw.integers(0, 255, (8, 8, 3), np.uint8)
            (root / name / f"{row}.png").write_bytes(tf.io.encode_png(pixels).numpy())


READERS: dict[str, tuple[Callable[[Path], None], Callable[[str], Any]]] = {
    "csv": (_write_csv, lambda at: stoker.data.csv(f"{at}/*.csv", label="y", shuffle=True)),
    "csv, a folder": (_write_csv, lambda at: stoker.data.csv(at)),
    "csv, a list": (_write_csv, lambda at: stoker.data.csv([f"{at}/part-1.csv", f"{at}/part-0.csv"])),
    "parquet": (_write_parquet, lambda at: stoker.data.parquet(f"{at}/a.parquet", cache_bytes=1 << 20)),
    "jsonl": (_write_jsonl, lambda at: stoker.data.jsonl(at, cache_bytes=1 << 20)),
    "tfrecord": (_write_records, lambda at: stoker.data.tfrecord(at, shuffle=True)),
    "tar": (_write_tar, lambda at: stoker.data.tar(f"{at}/*.tar", label="cls")),
    "text": (_write_texts, lambda at: stoker.data.text(at)),
    "text, a column": (_write_csv, lambda at: stoker.data.text(f"{at}/*.csv", column="kind")),
    "images": (_write_images, lambda at: stoker.data.images(at)),
}


def _batches(dataset: Any) -> list[list[bytes]]:
    import tensorflow as tf

    flat = [tf.nest.flatten(batch) for _ in range(2) for batch in dataset]
    return [[tf.io.serialize_tensor(one).numpy() for one in batch] for batch in flat]


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_reader_gives_the_rows_of_local_files(name: str, bucket: Bucket, tmp_path: Path) -> None:
    write, read = READERS[name]
    local = tmp_path / "data"
    local.mkdir()
    write(local)
    bucket.put_tree(local, "some/data/")
    draw = random.Random(1)
    bucket.proxy.fault = lambda method, path, count: (
        draw.choice(["500", "503", "cut", "short"]) * (draw.random() < 0.2)
    )
    assert _batches(read(f"{bucket.url}/some/data")) == _batches(read(str(local)))


def test_rows_are_read_again_only_if_the_object_changed(bucket: Bucket) -> None:
    url = bucket.put("a.csv", b"x,y\n1,2\n3,4\n")
    assert stoker.data.csv(url).rows == 2
    bucket.put("a.csv", b"x,y\n1,2\n3,4\n5,6\n")
    assert stoker.data.csv(url).rows == 3
    assert bucket.proxy.gets() == 2


def test_the_survey_and_the_table_recipe_take_urls(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{row},{row % 5},{'yes' if row % 2 else 'no'}\n" for row in range(80))
    url = bucket.put("t.csv", f"a,b,y\n{rows}".encode())
    assert commands.main(["data", url]) == 0
    assert "80" in capsys.readouterr().out
    assert (
        commands.main(["train", "table", url, "--target", "y", "--epochs", "1", "--eject", "program.py"]) == 0
    )
    assert url in (tmp_path / "program.py").read_text()


def test_bundles_live_in_a_bucket(bucket: Bucket, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    import keras

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Input((3,), name="x"), keras.layers.Dense(2)])
    url = f"{bucket.url}/models/one"
    bucket.proxy.fault = lambda method, path, count: "503" if count == 1 and method == "PUT" else ""
    made = stoker.export(model, url)
    assert made.path.is_dir()
    assert "models/one/bundle.json" in bucket.list_keys()
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert np.array_equal(stoker.Predictor(url).predict(x)["output"], model.predict(x, verbose=0))
    with pytest.raises(ArgumentError, match="already exists and is not a bundle"):
        stoker.export(model, f"{bucket.url}/models")
    bucket.put("models/one/saved_model/others", b"not ours")
    with pytest.raises(ArgumentError, match=r"models/one exists; overwrite=True"):
        stoker.export(model, url)
    model.layers[0].bias.assign([1.0, 2.0])
    stoker.export(model, url, overwrite=True)
    assert bucket.get("models/one/saved_model/others") == b"not ours"
    bucket.delete("models/one/saved_model/others")
    assert np.array_equal(stoker.Predictor(url).predict(x)["output"], model.predict(x, verbose=0))
    assert _parse_model(f"name={url}") == ("name", str(locate(url)))
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f'{{"x": {row.tolist()}}}\n' for row in x))
    assert commands.main(["predict", url, str(rows)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_a_half_uploaded_bundle_is_none(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("half/saved_model/saved_model.pb", b"x")
    with pytest.raises(stoker.BundleError, match=r"has no bundle\.json"):
        stoker.Predictor(f"{bucket.url}/half")


ROWS = 40


def _write_two(local: Path, start: int = 0) -> None:
    for part in range(2):
        rows = "".join(f"{start + part * ROWS + row},{row}\n" for row in range(ROWS))
        (local / f"{part}.csv").write_text("x,y\n" + rows)


def _hold_second_file(
    bucket: Bucket, cache: Path, meanwhile: Callable[[], None] = lambda: None
) -> list[bool]:
    """The second file is sent only when rows of the first are written; what is returned says whether they were."""
    seen: list[bool] = []

    def hold(method: str, path: str, count: int) -> str:
        if method == "GET" and path.endswith("/1.csv") and not seen:
            wait_until(lambda: any(cache.glob("*.new/*.bin")))
            meanwhile()
            seen.append(True)
        return ""

    bucket.proxy.fault = hold
    return seen


def test_files_are_parsed_while_the_next_are_fetched(bucket: Bucket, tmp_path: Path) -> None:
    cache, local = tmp_path / "rows", tmp_path / "data"
    local.mkdir()
    _write_two(local)
    bucket.put_tree(local, "data/")
    seen = _hold_second_file(bucket, cache)
    read = stoker.data.csv(f"{bucket.url}/data/*.csv", label="y", shuffle=True, cache=cache)
    assert seen == [True]
    assert _batches(read) == _batches(stoker.data.csv(local, label="y", shuffle=True))


def test_a_file_that_changes_after_it_was_parsed_is_read_again(bucket: Bucket, tmp_path: Path) -> None:
    cache, local = tmp_path / "rows", tmp_path / "data"
    local.mkdir()
    _write_two(local)
    bucket.put_tree(local, "data/")

    def change() -> None:
        _write_two(local, 1000)
        bucket.put_tree(local, "data/")

    seen = _hold_second_file(bucket, cache, change)
    read = stoker.data.csv(f"{bucket.url}/data", label="y", cache=cache)
    assert seen == [True]
    assert _batches(read) == _batches(stoker.data.csv(local, label="y"))


def test_the_fault_of_a_file_is_named_while_others_are_on_their_way(bucket: Bucket) -> None:
    bucket.put("data/0.csv", b"x,y\n1,2\n3\n")
    bucket.put("data/1.csv", b"x,y\n1,2\n")
    with pytest.raises(ArgumentError, match=r"0\.csv, row 2: a row has 1 field where the header has 2"):
        stoker.data.csv(f"{bucket.url}/data")
    bucket.put("data/0.csv", b"x,y\n1,2\n")
    bucket.put("data/1.csv", b"x,y\n3,4\n")
    bucket.proxy.fault = lambda method, path, count: "403" if path.endswith("1.csv") else ""
    with pytest.raises(ArgumentError, match=r"1\.csv: access denied"):
        stoker.data.csv(f"{bucket.url}/data")
    bucket.proxy.clear()
    assert stoker.data.csv(f"{bucket.url}/data").rows == 2
