"""The record as JSON, for other programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from stoker.errors import UsageError
from stoker.records import Record


def write(record: Record, path: str) -> None:
    """Write to a file, or to stdout for `-`."""
    text = json.dumps(record.to_json(), indent=2) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
