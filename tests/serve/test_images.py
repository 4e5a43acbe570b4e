"""Image files among the rows: the pixels that training would have had, or one line."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from stoker.data.class_folders import ClassFile
from stoker.data.image_files import Decoding, load_images
from stoker.errors import ArgumentError
from stoker.serve import images
from stoker.serve.image_sizes import pixels_in
from stoker.serve.rows import as_asked, as_rows
from stoker.serve.signature import Field

ADVICE = r"send the bytes of an image file, or pixels of shape \[6, 8, 3\], 0 to 255"


def field(channels: int = 3) -> Field:
    return Field("image", "uint8", (6, 8, channels), "image")


def drawn(height: int, width: int, channels: int = 3) -> Any:
    shape = (height, width, channels)
    return np.random.default_rng(height * width).integers(0, 256, shape).astype("uint8")


def png(height: int = 6, width: int = 8, channels: int = 3) -> bytes:
    return bytes(tf.io.encode_png(drawn(height, width, channels)).numpy())


def jpeg(height: int, width: int) -> bytes:
    return bytes(tf.io.encode_jpeg(drawn(height, width)).numpy())


def bmp(height: int, width: int) -> bytes:
    """In colours; rows of widths that are multiples of four need no filling."""
    head = struct.pack("<2sIHHI", b"BM", 54 + 3 * height * width, 0, 0, 54)
    about = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 3 * height * width, 0, 0, 0, 0)
    return head + about + bytes(drawn(height, width).tobytes())


def gif(height: int, width: int, pictures: int = 1) -> bytes:
    """Black pictures of at most two pixels in their data."""
    head = struct.pack("<6sHHBBB6s", b"GIF89a", width, height, 0x80, 0, 0, b"\0" * 6)
    one = struct.pack("<BHHHHB", 0x2C, 0, 0, width, height, 0) + b"\x02\x02\x44\x01\0"
    return head + pictures * (b"\x21\xfe\x02hi\0" + one) + b";"


@pytest.mark.parametrize("channels", [1, 3])
def test_files_become_the_pixels_that_training_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, channels: int
) -> None:
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    files = [png(), png(6, 8, 1), png(6, 8, 4), png(31, 17), jpeg(40, 9), jpeg(6, 8), png(3, 5, 1), bmp(9, 4)]
    paths = []
    for number, raw in enumerate(files):
        paths.append(tmp_path / f"{number}.png")
        paths[-1].write_bytes(raw)
    listed = [ClassFile(str(path), "a", len(raw), 0) for path, raw in zip(paths, files, strict=True)]
    wanted = load_images(tmp_path, listed, Decoding((6, 8), channels, False), None).array("images")
    for given in (files, tuple(files), np.array(files, object), tf.constant(files), paths):
        rows = as_rows([field(channels)], {"image": given})
        assert not rows.alone
        np.testing.assert_array_equal(rows.arrays[0], wanted)
    for one in (files[3], bytearray(files[3]), tf.constant(files[3]), paths[3], np.array(files[3], object)):
        rows = as_rows([field(channels)], one)
        assert rows.alone
        np.testing.assert_array_equal(rows.arrays[0][0], wanted[3])
    # Pixels and files side by side, as rows.
    mixed = as_rows([field(channels)], [{"image": wanted[0].tolist()}, {"image": files[4]}])
    np.testing.assert_array_equal(mixed.arrays[0], wanted[[0, 4]])


def test_only_images_of_a_known_size_may_be_files() -> None:
    assert images.takes_files(field(4))
    for dtype, shape in (
        ("float32", (6, 8, 3)),
        ("uint8", (6, 8, 2)),
        ("uint8", (6, 8)),
        ("uint8", (None, 8, 3)),
    ):
        other = Field("image", dtype, shape, "image")
        assert not images.takes_files(other)
        with pytest.raises(ArgumentError, match=f"'image': expected {dtype}, got b"):
            as_rows([other], {"image": png()})


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (b"no image", f"'image': b'no image' is not a valid image: {ADVICE}"),
        (png()[:40], rf"'image': b'.*'\.\.\. is not a valid image: {ADVICE}"),
        (b"", "'image': b'' is not a valid image"),
        ([png(), b"BM"], "'image': row 2: b'BM' is not a valid image"),
        ("photo.png", f"'image': expected uint8, got 'photo.png': {ADVICE}"),
        (["photo.png"], f"'image': expected uint8, got 'photo.png': {ADVICE}"),
        (Path("/no/photo.png"), "'image': /no/photo.png cannot be read: No such file"),
        (drawn(4, 4), rf"'image': a row has shape \[6, 8, 3\], got \[4, 4, 3\]: {ADVICE}"),
        ([png(), drawn(4, 4).tolist()], f"'image': the rows differ in shape; .*: {ADVICE}"),
        ([[[[256] * 3] * 8] * 6], f"'image': expected uint8, got 256: {ADVICE}"),
        ([None], f"'image': expected uint8, got None: {ADVICE}"),
    ],
)
def test_what_is_no_image_is_one_line(given: Any, line: str) -> None:
    with pytest.raises(ArgumentError, match=line) as caught:
        as_rows([field()], {"image": given})
    assert "\n" not in str(caught.value)


def test_the_size_of_an_image_is_known_before_it_is_decoded() -> None:
    assert pixels_in(png(31, 17)) == 31 * 17
    assert pixels_in(jpeg(40, 9)) == 40 * 9
    assert pixels_in(bmp(9, 4)) == 9 * 4
    assert pixels_in(gif(1, 2)) == 2 * 2  # the screen, and its one picture
    assert pixels_in(gif(1, 2, pictures=7)) == 8 * 2
    webp = b"RIFF\0\0\0\0WEBP"
    assert pixels_in(webp + b"VP8X" + bytes(8) + bytes([9, 0, 0, 19, 0, 0])) == 10 * 20
    assert pixels_in(webp + b"VP8L" + bytes(5) + struct.pack("<I", 9 | 19 << 14)) == 10 * 20
    assert pixels_in(webp + b"VP8 " + bytes(10) + struct.pack("<HH", 10, 20)) == 10 * 20
    for whole in (png(), jpeg(6, 8), bmp(9, 4), gif(1, 2), webp + b"VP8 "):
        assert all(pixels_in(whole[:end]) >= 0 for end in range(len(whole)))
    assert pixels_in(b"text") == 0


def test_a_small_request_does_not_become_many_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by one image that is large, nor by many that are small and made larger."""
    monkeypatch.setattr(images, "MOST_PIXELS", 6 * 8 * 10)
    tiny = png(1, 1)
    assert as_asked([field()], {"image": [tiny] * 10}).count == 10
    for given in ([tiny] * 11, [png(20, 30)], png(20, 30)):
        with pytest.raises(ArgumentError, match=r"'image': .*the images hold more than 480 pixels"):
            as_asked([field()], {"image": given})
        as_rows([field()], {"image": given})


def test_images_are_counted_before_there_is_room_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MOST_PIXELS", 6 * 8 * 10)
    with pytest.raises(ArgumentError, match="'image': the images hold more than 480 pixels"):
        as_asked([field()], {"image": [b"no image"] * 11})
