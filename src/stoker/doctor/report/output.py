"""Write what the user asked for to the place they named."""

from __future__ import annotations

import json
import os
from pathlib import Path

from stoker.errors import UsageError, check_local_path
from stoker.files import write_atomically
from stoker.printing import print_answer
from stoker.records import Record


def write_record(path: str, record: Record) -> None:
    """Write a record as JSON, for other programs.

    Raises:
        UsageError: as `write`.
    """
    write(path, json.dumps(record.to_json(), indent=2) + "\n")


def write(path: str, text: str) -> None:
    """Write to a file, or to stdout for `-`.

    Raises:
        UsageError: the file cannot be written.
    """
    if path == "-":
        print_answer(text, end="")
        return
    check_local_path(path)
    target = Path(path)
    try:
        if _may_be_replaced(target):
            write_atomically(target, text)
        else:
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def _may_be_replaced(target: Path) -> bool:
    """Return whether a file may be replaced.

    A pipe, a terminal and another name for an open file, such as /dev/stdout, may not.
    """
    if os.path.abspath(target).startswith(("/dev/", "/proc/")):
        return False
    return target.is_file() or not target.exists()
