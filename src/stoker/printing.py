"""The one printer of the commands: answers to stdout, everything else to stderr.

Also for the few lines that Stoker writes on the stderr of a program it measures: there, the program's own logging
settings must not hide that its record is lost. Everything else in the library goes through `stoker.logs`. Tables and
reports are drawn by rich (`doctor/report/terminal.py`), which plain lines do without: it takes 45 ms to import.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress


def print_answer(text: str = "", end: str = "\n") -> None:
    """Print what the user asked for."""
    print(text, end=end, flush=True)


def print_json(value: object) -> None:
    """Print what the user asked for, for another program."""
    print_answer(json.dumps(value, indent=2))


def print_note(line: str, *, prefix: str = "stoker: ", end: str = "\n") -> None:
    """Print a line beside the answer: progress, a warning, an error. A stderr that is closed is no error."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{prefix}{line}{end}")
        sys.stderr.flush()
