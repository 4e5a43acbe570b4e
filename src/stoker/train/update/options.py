"""Checks shared by the options of a trainer."""

from __future__ import annotations

from stoker.errors import ArgumentError


def require_positive(owner: str, **values: float | None) -> None:
    """Raise for a value that is not above zero; None means "not given"."""
    for name, value in values.items():
        if value is not None and not value > 0:
            raise ArgumentError(f"{owner}({name}={value!r}): it must be above 0.")


def require_share(owner: str, **values: float) -> None:
    """Raise for a value that is not between 0 and 1, both excluded."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise ArgumentError(f"{owner}({name}={value!r}): it must lie between 0 and 1.")
