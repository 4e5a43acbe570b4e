"""Read tar shards as webdataset writes them: members that share a name up to the first dot are one sample.

Each extension is a column. Images are decoded to bytes, `.cls` and similar ones to whole numbers, `.txt` and `.json` to
text, `.npy` to arrays.
"""

from __future__ import annotations

import io
import os
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import tensorflow as tf

from stoker.data.array_types import Array
from stoker.data.image_bytes import decode_plain, fit
from stoker.errors import ArgumentError
from stoker.storage import arriving

_KINDS = {
    "image": ("jpg", "jpeg", "png", "bmp", "gif"),
    "number": ("cls", "cls2", "class", "count", "index", "inx", "id"),
    "text": ("txt", "text", "transcript", "json"),
    "array": ("npy",),
}
_KIND_OF = {extension: kind for kind, extensions in _KINDS.items() for extension in extensions}
KEY = "__key__"


def kind_of(extension: str) -> str | None:
    """Return the kind of an extension, judged by its last part; None if unknown."""
    return _KIND_OF.get(extension.rpartition(".")[2])


@dataclass(frozen=True)
class TarSample:
    """The members of one sample, undecoded, by extension."""

    shard: Path
    key: str
    members: dict[str, bytes]


def samples(shards: list[Path]) -> Iterator[TarSample]:
    """Yield all samples, shard after shard.

    Raises:
        ArgumentError: a shard is damaged, cut off or not a tar file.
    """
    for shard in arriving(shards):
        _check_end(shard)
        key, members = "", dict[str, bytes]()
        try:
            with tarfile.open(shard, "r|*") as archive:
                for member in archive:
                    if not member.isfile():
                        continue
                    path = PurePosixPath(member.name)
                    base, dot, extension = path.name.partition(".")
                    if not base or not dot:
                        continue
                    name = str(path.with_name(base))
                    if name != key and members:
                        yield TarSample(shard, key, members)
                        members = {}
                    key = name
                    members[extension.lower()] = _content(archive, member)
        except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise ArgumentError(f"{shard} is not a tar file, or is damaged or cut off ({error})") from None
        if members:
            yield TarSample(shard, key, members)


def _check_end(shard: Path) -> None:
    """Check that a shard ends with an empty block; `tarfile` does not notice if one was cut off in a header."""
    with shard.open("rb") as file:
        if file.read(2) in (b"\x1f\x8b", b"BZ", b"\xfd7"):
            # A compressed shard has an end of its own.
            return
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - tarfile.BLOCKSIZE))
        if size % tarfile.BLOCKSIZE or any(file.read()):
            raise ArgumentError(f"{shard} is not a tar file, or is damaged or cut off (it has no end marker)")


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    content = b"" if file is None else file.read()
    if len(content) != member.size:
        raise EOFError(f"{member.name} is incomplete")
    return content


def choose_extensions(first: TarSample, columns: Sequence[str] | None) -> list[str]:
    """Return the extensions to read.

    Raises:
        ArgumentError: the first sample lacks an extension, or an extension is unknown.
    """
    wanted = list(first.members) if columns is None else list(columns)
    for extension in wanted:
        if extension not in first.members:
            there = ", ".join(first.members)
            raise ArgumentError(f"columns: {first.key} of {first.shard} has no {extension!r}; it has {there}")
        if kind_of(extension) is None:
            raise ArgumentError(
                f"{first.key}.{extension} of {first.shard}: Stoker cannot decode {extension!r}; name the columns to "
                f"read with columns=, from {', '.join(_KIND_OF)}"
            )
    return wanted


def decode(sample: TarSample, extension: str, image_size: tuple[int, int] | None) -> Array | int | str:
    """Decode one member of a sample to an array, a number or a text.

    Raises:
        ArgumentError: the member is missing, or cannot be decoded.
    """
    where = f"{sample.key}.{extension} of {sample.shard}"
    content = sample.members.get(extension)
    if content is None:
        raise ArgumentError(f"{where} is missing: every sample must have what the first one has")
    kind = kind_of(extension)
    try:
        if kind == "image":
            pixels = decode_plain(content, 3)
            image: Array = (pixels if image_size is None else fit(pixels, image_size)).numpy()
            return image
        if kind == "array":
            array: Array = np.load(io.BytesIO(content), allow_pickle=False)
            return array
        text = content.decode("utf-8")
        return int(text) if kind == "number" else text
    except (ValueError, EOFError, tf.errors.OpError):
        what = {"number": "whole number", "text": "UTF-8 text"}.get(str(kind), kind)
        raise ArgumentError(f"{where} is not a valid {what}") from None
