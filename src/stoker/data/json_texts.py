"""Make texts of the values of chosen columns of JSON lines: Arrow reads no column that holds numbers and texts."""

from __future__ import annotations

import io
import json
from collections.abc import Collection

import pyarrow as pa


class JsonWithTexts(io.RawIOBase):
    """A stream of JSON lines in which some columns hold nothing but texts.

    Args:
        stream: the lines as they are.
        names: the columns.
    """

    def __init__(self, stream: pa.NativeFile, names: Collection[str]) -> None:
        self._lines = io.TextIOWrapper(stream, "utf-8-sig")
        self._names, self._rest = names, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts, length = [self._rest], len(self._rest)
        while size < 0 or length < size:
            line = self._lines.readline()
            if not line:
                break
            parts.append(self._rewrite(line).encode())
            length += len(parts[-1])
        found = b"".join(parts)
        size = len(found) if size < 0 else size
        self._rest = found[size:]
        return found[:size]

    def _rewrite(self, line: str) -> str:
        try:
            row = json.loads(line)
        except ValueError:
            # Arrow says what is wrong with it.
            return line
        if not isinstance(row, dict):
            return line
        for name in self._names:
            value = row.get(name)
            if value is not None and not isinstance(value, str):
                row[name] = json.dumps(value, ensure_ascii=False)
        return json.dumps(row, ensure_ascii=False) + "\n"

    def close(self) -> None:
        self._lines.close()
        super().close()
