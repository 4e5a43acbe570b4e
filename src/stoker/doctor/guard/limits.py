"""Limits: how many syncs, copies, retraces and eager ops are too many, and when counting starts."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.errors import UsageError
from stoker.units import bytes_of

SYNCS, COPIES, RETRACES, EAGER_OPS = KINDS = ("syncs", "copies", "retraces", "eager_ops")
SINGULAR = {SYNCS: "sync", COPIES: "copy", RETRACES: "retrace", EAGER_OPS: "eager op"}
PLURAL = {SYNCS: "syncs", COPIES: "copies", RETRACES: "retraces", EAGER_OPS: "eager ops"}
ACTIONS = ("raise", "warn", "record")


@dataclass(frozen=True)
class GuardLimit:
    """A limit, as a number of events or a number of bytes."""

    most: int
    in_bytes: bool
    text: str

    def is_exceeded(self, count: int, size: int) -> bool:
        """Return whether this many events and bytes exceed the limit."""
        return (size if self.in_bytes else count) > self.most


@dataclass(frozen=True)
class Limits:
    """The limits of a guard. A kind without a limit is only counted."""

    by_kind: dict[str, GuardLimit]
    per_step: bool = False
    warmup: int = 0
    action: str = "raise"
    threads: bool = False


def limits(
    by_kind: dict[str, int | str | None], per_step: bool, warmup: int, action: str, threads: bool
) -> Limits:
    """Check the user's arguments, and return the limits.

    Raises:
        UsageError: an argument is invalid.
    """
    if action not in ACTIONS:
        raise UsageError(f"no action {action!r}: choose one of {', '.join(ACTIONS)}")
    if isinstance(warmup, bool) or not isinstance(warmup, int) or warmup < 0:
        raise UsageError(f"warmup={warmup!r}: give the number of steps to leave unchecked, 0 or more")
    parsed = {kind: limit(kind, value) for kind, value in by_kind.items() if value is not None}
    return Limits(parsed, bool(per_step), warmup, action, bool(threads))


def limit(kind: str, value: int | str) -> GuardLimit:
    """Parse a limit such as `3` or `"1 MiB"`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return GuardLimit(value, False, f"{value:,}")
    most = bytes_of(value) if isinstance(value, str) and kind in (SYNCS, COPIES) else None
    if most is None:
        sizes = ', or a size such as "1 MiB"' if kind in (SYNCS, COPIES) else ""
        raise UsageError(f"{kind}={value!r} is not a limit: give a count, 0 or more{sizes}; None only counts")
    return GuardLimit(most, True, str(value).strip())
