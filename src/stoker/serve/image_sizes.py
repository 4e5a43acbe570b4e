"""Count the pixels of an image file from its header: a small file may hold more than a server has memory for."""

from __future__ import annotations

import struct


def pixels_in(raw: bytes) -> int:
    """Return how many pixels the decoder would allocate; 0 for a file that is not an image, which no decoder takes."""
    try:
        return _pixels_in(raw)
    except (struct.error, IndexError):
        return 0  # cut off within the header


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
    """Ask the decoder itself for width and height, as it reads more than well-formed files."""
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
    """Count the pixels of all pictures in a GIF: all are decoded, though only the first is used."""
    width, height, flags = struct.unpack_from("<HHB", raw, 6)
    pixels, place = width * height, 13 + _color_bytes(flags)
    while place < len(raw) and raw[place] in (0x21, 0x2C):
        if raw[place] == 0x21:
            place += 2
        else:
            width, height, flags = struct.unpack_from("<HHB", raw, place + 5)
            pixels += width * height
            place += 11 + _color_bytes(flags)
        while place < len(raw) and raw[place]:
            place += 1 + raw[place]
        place += 1
    return int(pixels)


def _color_bytes(flags: int) -> int:
    """Return the bytes of a color table, if there is one."""
    return 6 << (flags & 7) if flags & 0x80 else 0
