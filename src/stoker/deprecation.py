"""Names that will be removed. They work for at least one more minor version, and say in one line what to use instead.

    def old_name(...):
        deprecation.warn("stoker.old_name", "stoker.new_name", removed_in="0.4")

A command prints `describe(...)` with `stoker.printing.print_note`, since few people see a command's Python warnings.
"""

from __future__ import annotations

import warnings


def describe(old: str, new: str, removed_in: str) -> str:
    """Return the line shown to everyone who uses the old name."""
    return f"{old} is deprecated and will be removed in Stoker {removed_in}: use {new}"


def warn(old: str, new: str, removed_in: str) -> None:
    """Warn at the line that called the function that calls this one."""
    warnings.warn(describe(old, new, removed_in), DeprecationWarning, stacklevel=3)
