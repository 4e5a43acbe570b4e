"""Errors that no restart can fix. What a worker printed before it ended shows whether it would end the same way again.

A mistake in the program or in its arguments counts at once, if no worker had trained a step. Other errors of the
program count when a second round ends with the same line before any step. An error about something that may be there
next time never counts: files, other machines, memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stoker.goodput.events import StepsDone, decode

# Recognised by name alone: the program may define its own class with that name.
_MISTAKES = ("SyntaxError", "IndentationError", "TabError", "NameError", "ImportError", "ModuleNotFoundError")
_WRONG_ARGUMENT = "stoker.errors.ArgumentError"
_REPEATABLE = (
    *("AssertionError", "AttributeError", "IndexError", "KeyError", "NotImplementedError", "TypeError"),
    *("UnboundLocalError", "ValueError", "ZeroDivisionError", *_MISTAKES),
)
# The last line of a traceback.
_ERROR = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*Error)(: .*)?")
# What argparse prints, and the exit code that it uses.
_USAGE, _USAGE_CODE = re.compile(r"[^\s:][^:]*: error: .+"), 2
_LONGEST = 200


@dataclass
class RoundErrors:
    """The last error of each worker of a round, and whether a step was trained."""

    has_trained: bool = False
    _errors: dict[int, str] = field(default_factory=dict)
    _before: dict[int, str] = field(default_factory=dict)

    def read_output(self, rank: int, lines: list[str]) -> None:
        """Look for the end of a traceback, or of a usage message, in what a worker printed to stderr."""
        for line in lines:
            # The line before the last line of a traceback is code, which is indented. A message that merely looks like
            # an error stands alone.
            follows_code = self._before.get(rank, "").startswith(" ")
            if (follows_code and _ERROR.fullmatch(line)) or _USAGE.fullmatch(line):
                self._errors[rank] = line
            self._before[rank] = line

    def read_events(self, lines: str) -> None:
        """Look for trained steps in a worker's events."""
        self.has_trained = self.has_trained or any(
            isinstance(event, StepsDone) for event in decode(lines.encode())
        )

    def find_error(self, rank: int | None, code: int) -> str | None:
        """Return the line of the error that a worker ended with; None if it is not known."""
        line = None if rank is None else self._errors.get(rank)
        if line is None or code != (_USAGE_CODE if _name(line) is None else 1):
            return None
        return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def _name(line: str) -> str | None:
    """Return the name of the exception; None for a usage message."""
    found = _ERROR.fullmatch(line)
    return found[1] if found else None


def is_hopeless(number: int, errors: RoundErrors, line: str, before: str | None) -> bool:
    """Return whether another restart would end in the same error.

    Args:
        number: how many restarts there have been.
        errors: the errors of this round.
        line: the error that ended this round.
        before: the error that ended the previous round before any step; None if that round ended in another way.
    """
    name = _name(line)
    if name == _WRONG_ARGUMENT:
        return True
    if errors.has_trained:
        return False
    plain = None if name is None else name.rpartition(".")[2]
    if number == 0 and (plain is None or plain in _MISTAKES):
        return True
    return line == before and (plain is None or plain in _REPEATABLE)
