"""Limits: how many syncs, copies, retraces and eager ops are too many, and when counting starts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stoker.errors import UsageError

SYNCS, COPIES, RETRACES, EAGER_OPS = KINDS = ("syncs", "copies", "retraces", "eager_ops")
SINGULAR = {SYNCS: "sync", COPIES: "copy", RETRACES: "retrace", EAGER_OPS: "eager op"}
PLURAL = {SYNCS: "syncs", COPIES: "copies", RETRACES: "retraces", EAGER_OPS: "eager ops"}
ACTIONS = ("raise", "warn", "record")

_UNITS = {"B": 1}
_UNITS |= {f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)}
_UNITS |= {f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)}
_UNITS["kB"] = 1000


@dataclass(frozen=True)
class Limit:
    """A number of times, or a number of bytes."""

    most: int
    in_bytes: bool
    text: str

    def exceeded(self, count: int, size: int) -> bool:
        """Whether so many events with so many bytes are too many."""
        return (size if self.in_bytes else count) > self.most


@dataclass(frozen=True)
class Limits:
    """What one guard lets pass. A kind without a limit is counted only."""

    by_kind: dict[str, Limit]
    per_step: bool = False
    warmup: int = 0
    action: str = "raise"
    threads: bool = False


def limits(
    by_kind: dict[str, int | str | None], per_step: bool, warmup: int, action: str, threads: bool
) -> Limits:
    """Check what the user wrote.

    Raises:
        UsageError: it makes no sense.
    """
    if action not in ACTIONS:
        raise UsageError(f"no action {action!r}: choose one of {', '.join(ACTIONS)}")
    if isinstance(warmup, bool) or not isinstance(warmup, int) or warmup < 0:
        raise UsageError(f"warmup={warmup!r}: give the number of steps that may trace and copy, 0 or more")
    parsed = {kind: limit(kind, value) for kind, value in by_kind.items() if value is not None}
    return Limits(parsed, bool(per_step), warmup, action, bool(threads))


def limit(kind: str, value: int | str) -> Limit:
    """A limit from `3` or `"1 MiB"`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Limit(value, False, f"{value:,}")
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", value) if isinstance(value, str) else None
    if match is None or match[2] not in _UNITS or kind not in (SYNCS, COPIES):
        sizes = ', or a size such as "1 MiB"' if kind in (SYNCS, COPIES) else ""
        raise UsageError(f"{kind}={value!r} is not a limit: give a count, 0 or more{sizes}; None only counts")
    return Limit(int(float(match[1]) * _UNITS[match[2]]), True, value.strip())  # type: ignore[union-attr]
