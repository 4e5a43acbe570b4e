"""The only printer of the commands: answers go to stdout, everything else to stderr.

It also prints the few lines that Stoker writes to the stderr of a program that it measures: the program's own logging
settings must not hide that its record is lost. Everything else in the library goes through `stoker.logs`. Tables and
reports are drawn by rich (`doctor/report/terminal.py`); plain lines do without it, as it takes 45 ms to import.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress


def print_answer(text: str = "", end: str = "\n") -> None:
    """Print an answer that the user asked for."""
    print(text, end=end, flush=True)


def print_json(value: object) -> None:
    """Print an answer that the user asked for as JSON, for another program."""
    print_answer(json.dumps(value, indent=2))


def print_note(line: str, *, prefix: str = "stoker: ", end: str = "\n") -> None:
    """Print a line that is not an answer: progress, a warning, an error. A closed stderr is not an error."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{prefix}{line}{end}")
        sys.stderr.flush()
