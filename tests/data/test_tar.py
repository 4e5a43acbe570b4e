"""Tar shards against reading their members one by one."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError
from tests.data.frames import words

ROWS = 70


def write(path: Path, samples: dict[str, dict[str, bytes]], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for key, members in samples.items():
            for extension, content in members.items():
                member = tarfile.TarInfo(f"{key}.{extension}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return path


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def png(number: int, height: int = 6) -> bytes:
    content: bytes = tf.io.encode_png(np.full((height, 5, 3), number, np.uint8)).numpy()
    return content


def sample(number: int) -> dict[str, bytes]:
    return {
        "png": png(number),
        "cls": str(number % 3).encode(),
        "txt": f"größer 日本 {number}".encode(),
        "meta.json": b"{}",
        "npy": npy(np.array([number, number / 2])),
    }


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    folder = tmp_path / "shards"
    folder.mkdir()
    for shard in range(2):
        numbers = range(shard * 35, shard * 35 + 35)
        name = ("a.tar", "b.tar.gz")[shard]
        write(folder / name, {f"d/{n:03}": sample(n) for n in numbers}, ("w", "w:gz")[shard])
    return folder


def test_samples_are_those_of_the_files(shards: Path) -> None:
    dataset = stoker.data.tar(shards, label="cls", batch_size=16)
    assert dataset.rows == ROWS
    seen = 0
    for inputs, labels in dataset:
        assert inputs["png"].dtype == tf.uint8
        assert set(words(inputs["meta.json"].numpy())) == {"{}"}
        for place, key in enumerate(words(inputs["__key__"].numpy())):
            assert key == f"d/{seen:03}"
            assert (inputs["png"][place].numpy() == seen).all()
            assert words(inputs["txt"].numpy())[place] == f"größer 日本 {seen}"
            assert inputs["npy"][place].numpy().tolist() == [seen, seen / 2]
            assert int(labels[place]) == seen % 3
            seen += 1
    assert seen == ROWS


def test_a_shuffle_and_a_split_have_every_sample_once(shards: Path) -> None:
    parts = stoker.data.tar(shards, columns=["npy"], shuffle=True, seed=3, validation_split=0.2, batch_size=9)
    for _ in range(2):
        numbers = [int(row[0]) for part in parts for batch in part for row in batch["npy"].numpy()]
        assert numbers != list(range(ROWS))
        assert sorted(numbers) == list(range(ROWS))


def test_images_of_other_sizes_are_resized(tmp_path: Path) -> None:
    path = write(tmp_path / "t.tar", {"a": {"png": png(9)}, "b": {"png": png(9, height=12)}})
    with pytest.raises(ArgumentError, match=r"b\.png of .* others are uint8 .*: give image_size="):
        stoker.data.tar(path)
    (batch,) = stoker.data.tar(path, image_size=(8, 4))
    assert batch["png"].shape == (2, 8, 4, 3)


def test_empty_texts(tmp_path: Path) -> None:
    (batch,) = stoker.data.tar(write(tmp_path / "t.tar", {"a": {"txt": b""}, "b": {"txt": b""}}))
    assert words(batch["txt"].numpy()) == ["", ""]


@pytest.mark.parametrize(
    ("samples", "options", "said"),
    [
        ({"a": {"txt": b"x", "cls": b"1"}, "b": {"txt": b"y"}}, {}, "b.cls of .* is missing"),
        ({"a": {"cls": b"one"}}, {}, "a.cls of .* is not a valid whole number"),
        ({"a": {"jpg": b"?"}}, {}, "a.jpg of .* is not a valid image"),
        ({"a": {"npy": b"?"}}, {}, "a.npy of .* is not a valid array"),
        ({"a": {"txt": b"\xff"}}, {}, "a.txt of .* is not a valid UTF-8 text"),
        ({"a": {"txt": b"x", "flac": b"?"}}, {}, "cannot decode 'flac'"),
        ({"a": {"txt": b"x"}}, {"columns": ["jpg"]}, "has no 'jpg'; it has txt"),
        ({"a": {"txt": b"x", "cls": b"1"}}, {"label": "cl"}, "did you mean 'cls'"),
        ({"a": {"txt": b"x"}}, {"image_size": 3}, "image_size=3 must be"),
    ],
)
def test_bad_samples(tmp_path: Path, samples: Any, options: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        stoker.data.tar(write(tmp_path / "t.tar", samples), **options)


def test_bad_files(tmp_path: Path) -> None:
    whole = write(tmp_path / "t.tar", {"a": {"txt": b"x" * 4000}, "b": {"txt": b"y" * 4000}}).read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[:6000])
    with pytest.raises(ArgumentError, match=r"cut\.tar is not a tar file, or is damaged or cut off"):
        stoker.data.tar(tmp_path / "cut.tar")
    # In the header of the second member, which looks like an end.
    (tmp_path / "cut.tar").write_bytes(whole[:4800])
    with pytest.raises(ArgumentError, match=r"cut\.tar is not a tar file, or is damaged or cut off"):
        stoker.data.tar(tmp_path / "cut.tar")
    (tmp_path / "none.tar").write_bytes(b"no tar file at all")
    with pytest.raises(ArgumentError, match=r"none\.tar is not a tar file, or is damaged or cut off"):
        stoker.data.tar(tmp_path / "none.tar")
    write(tmp_path / "bare.tar", {})
    with pytest.raises(ArgumentError, match="holds no samples"):
        stoker.data.tar(tmp_path / "bare.tar")
