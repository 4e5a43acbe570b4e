"""How many pixels an image file holds, from its head: a small file may hold more than a server has memory for."""

from __future__ import annotations

import struct


def pixels_in(raw: bytes) -> int:
    """As many as its decoder would make room for; 0 of what is no image, which no decoder takes."""
    try:
        return _pixels_in(raw)
    except (struct.error, IndexError):
        return 0  # cut off within its head


def _pixels_in(raw: bytes) -> int:
    if raw.startswith(b"\x89PNG"):
        width, height = struct.unpack_from(">II", raw, 16)
    elif raw.startswith(b"BM"):
        width, height = struct.unpack_from("<ii", raw, 18)
    elif raw.startswith(b"\xff\xd8"):
        width, height = _of_jpeg(raw)
    elif raw.startswith(b"RIFF"):
        width, height = _of_webp(raw)
    elif raw.startswith(b"GIF8"):
        return _in_gif(raw)
    else:
        return 0
    return abs(int(width) * int(height))


def _of_jpeg(raw: bytes) -> tuple[int, int]:
    """Asked of the decoder itself, which finds its way through more than well-formed files."""
    import tensorflow as tf

    try:
        height, width, _ = tf.io.extract_jpeg_shape(raw).numpy().tolist()
    except tf.errors.InvalidArgumentError:
        return 0, 0
    return width, height


def _of_webp(raw: bytes) -> tuple[int, int]:
    form = raw[12:16]
    if form == b"VP8X":
        wide, high = raw[24:27], raw[27:30]
        return 1 + int.from_bytes(wide, "little"), 1 + int.from_bytes(high, "little")
    if form == b"VP8L":
        (bits,) = struct.unpack_from("<I", raw, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<HH", raw, 26)
    return width & 0x3FFF, height & 0x3FFF


def _in_gif(raw: bytes) -> int:
    """Of all its pictures: they are all decoded, though only the first is taken."""
    width, height, flags = struct.unpack_from("<HHB", raw, 6)
    pixels, place = width * height, 13 + _colours(flags)
    while place < len(raw) and raw[place] in (0x21, 0x2C):
        if raw[place] == 0x21:
            place += 2
        else:
            width, height, flags = struct.unpack_from("<HHB", raw, place + 5)
            pixels += width * height
            place += 11 + _colours(flags)
        while place < len(raw) and raw[place]:
            place += 1 + raw[place]
        place += 1
    return int(pixels)


def _colours(flags: int) -> int:
    """The bytes of a table of colours, if there is one."""
    return 6 << (flags & 7) if flags & 0x80 else 0
