"""Requests with their answers, as the server records them (`--record`) and `stoker replay` reads them: JSON lines."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stoker.errors import UsageError
from stoker.serve.signature import Array

# How many values of an input or an answer are kept by default.
MOST_VALUES: Final = 1024
_ENCODED = frozenset({"b64"})


@dataclass(frozen=True)
class RecordedRequest:
    """A request that was answered.

    Attributes:
        file, line: where the request is recorded.
        time: when it was answered, in seconds since 1970.
        request: its id.
        model, version, signature: what answered it.
        inputs, answers: the values by name; None where there were too many to keep.
    """

    file: Path
    line: int
    time: float
    request: str
    model: str
    version: int
    signature: str
    inputs: Mapping[str, object | None]
    answers: Mapping[str, object | None]

    @property
    def is_whole(self) -> bool:
        """Whether all values are there."""
        return None not in self.inputs.values() and None not in self.answers.values()


def plain_values(values: Array, most: int) -> object:
    """Convert values for a recording: lists, base64 for bytes that are not text, the shape for more than `most`."""
    if values.size > most:
        return {"shape": list(values.shape), "dtype": str(values.dtype)}
    return as_json(values.tolist()) if values.dtype == object else values.tolist()


def as_json(value: object) -> object:
    """Return a value, or lists of values, as JSON takes them: null for a number that is not finite."""
    if isinstance(value, list):
        return [as_json(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode("ascii")}


def _restore(value: object) -> object:
    """Reverse `plain_values`; None for values that were not kept."""
    if isinstance(value, dict):
        if value.keys() != _ENCODED:
            return None
        return base64.b64decode(value["b64"], validate=True)
    return [_restore_item(one) for one in value] if isinstance(value, list) else value


def _restore_item(value: object) -> object:
    return _restore(value) if isinstance(value, dict | list) else value


def read_recordings_at(place: Path, model: str = "") -> Iterator[RecordedRequest]:
    """Yield the requests of a file, or of all files of a directory, in the order within each file.

    Args:
        place: the file or directory.
        model: yield only requests to this model; "" for any, but then all must be to the same one.

    Raises:
        UsageError: there are no requests, a line is not a request, or there are several models.
    """
    files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    if not files:
        raise UsageError(
            f"{place} has no recorded answers (*.jsonl): record some with stoker serve --record 0.01"
        )
    first = ""
    for file in files:
        for one in _read_file(file):
            if model and one.model != model:
                continue
            first = first or one.model
            if one.model != first:
                raise UsageError(
                    f"{place} has answers of {first!r} and {one.model!r}: choose one with --model"
                )
            yield one
    if not first:
        raise UsageError(f"{place} has no recorded answers" + (f" of {model!r}" if model else ""))


def _read_file(file: Path) -> Iterator[RecordedRequest]:
    try:
        with open(file, "rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.endswith(b"\n"):  # otherwise the server was killed while writing the line
                    yield _read_line(file, number, line)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None


def _read_line(file: Path, number: int, line: bytes) -> RecordedRequest:
    try:
        found = json.loads(line)
        inputs, answers = (
            {str(name): _restore(value) for name, value in found[part].items()}
            for part in ("inputs", "answers")
        )
        return RecordedRequest(
            file, number, float(found["time"]), str(found["request"]), str(found["model"]), int(found["version"]),
            str(found.get("signature", "")), inputs, answers,
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error):
        raise UsageError(f"{file}:{number} is not a recorded answer") from None
