"""Lone carriage returns in the cells of CSV files whose rows end in a newline.

Python's `csv` and pandas write such a cell without quotes, and Arrow takes the return for the end of a row. If that
breaks the rows, a control character that the file does not use stands for the returns until the cells are parsed.
"""

from __future__ import annotations

import io
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_CHUNK = 1 << 22
_LONE = re.compile(rb"\r(?!\n)")
_CONTROLS = (*range(1, 9), *range(14, 32), 127)


def find_stand_in(stream: pa.NativeFile) -> str:
    """Return a character that can stand for lone returns; empty if there are none, or if they end the rows.

    Args:
        stream: the bytes of a file, in UTF-8.
    """
    used = np.zeros(256, np.int64)
    lone, data = False, b""
    while chunk := stream.read(_CHUNK):
        if not data and not _ends_in_newline(chunk):
            return ""
        data = data[-1:] + chunk
        lone = lone or _LONE.search(data.removesuffix(b"\r")) is not None
        used += np.bincount(np.frombuffer(chunk, np.uint8), minlength=256)
    free = [code for code in _CONTROLS if not used[code]]
    return chr(free[0]) if lone and free else ""


def restore(values: pa.Array, stand_in: str) -> pa.Array:
    """Return the values of a column, with returns in place of the stand-in."""
    if pa.types.is_dictionary(values.type):
        return pa.DictionaryArray.from_arrays(values.indices, restore(values.dictionary, stand_in))
    if pa.types.is_string(values.type):
        return pc.replace_substring(values, stand_in, "\r")
    return values


class WithStandIns(io.RawIOBase):
    """A stream of UTF-8 in which a character stands for each lone return after the header."""

    def __init__(self, stream: pa.NativeFile, stand_in: str) -> None:
        self._stream, self._stand_in = stream, stand_in.encode()
        self._rest, self._begun = b"", False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        more: bytes = self._stream.read(max(1, size - len(self._rest)) if size > 0 else _CHUNK)
        if not more:
            rest, self._rest = self._rest, b""
            return rest
        data = self._rest + more
        # A newline may follow a return at the end.
        whole = data.removesuffix(b"\r")
        self._rest = data[len(whole) :]
        if not whole:
            # An empty result would mean the end of the file.
            return self.read(size)
        header = 0 if self._begun else _find_header_end(whole)
        self._begun = True
        return whole[:header] + _LONE.sub(self._stand_in, whole[header:])

    def close(self) -> None:
        self._stream.close()
        super().close()


def _find_header_end(data: bytes) -> int:
    """Return where the first row ends: after the first newline or return that is not quoted."""
    place = len(data) - len(data.lstrip(b"\r\n"))
    for number, part in enumerate(data[place:].split(b'"')):
        if number % 2 == 0 and (end := re.search(rb"\r*\n|\r", part)):
            return place + end.end()
        place += len(part) + 1
    return len(data)


def _ends_in_newline(data: bytes) -> bool:
    header = data[: _find_header_end(data)]
    return header.endswith(b"\n") and not header.endswith(b"\r\r\n")
