"""The counts of a guard, by line, and how they are reported: the report, the error and the warning."""

from __future__ import annotations

import linecache
from collections import Counter
from dataclasses import dataclass, field

from stoker.doctor.attach.sites import SiteKey, shown_path
from stoker.doctor.guard.limits import COPIES, EAGER_OPS, KINDS, PLURAL, RETRACES, SINGULAR, SYNCS, Limits
from stoker.doctor.stalls import eager_train_step, numpy_feed_in_loop, sync_in_loop
from stoker.errors import StokerError
from stoker.units import quantity, size

_ADVICE = {
    SYNCS: sync_in_loop.STALL.remedy,
    COPIES: numpy_feed_in_loop.STALL.remedy,
    RETRACES: "Pass tensors instead of Python values, and keep shapes fixed or give an input_signature.",
    EAGER_OPS: eager_train_step.STALL.remedy,
}
_MAX_LINES = 10
_MAX_SITES = 1000


@dataclass
class Line:
    """One kind of event at one line of the user's program."""

    kind: str
    file: str
    line: int
    function: str
    count: int = 0
    bytes: int = 0
    # What was read, copied or traced the first time.
    what: str = ""
    warned: bool = False

    def text(self) -> str:
        """Return the line, its source and what happened there, indented."""
        shown = [f"  {shown_path(self.file)}:{self.line} in {self.function}   {self._amount()}"]
        source = linecache.getline(self.file, self.line).strip()
        if source:
            shown.append(f"    {source}")
        if self.what:
            shown.append(f"    {self.what}")
        return "\n".join(shown)

    def _amount(self) -> str:
        return amount(self.kind, self.count) + (f", {size(self.bytes)}" if self.bytes else "")


@dataclass
class Report:
    """The counts of one guard, updated while it is open."""

    limits: Limits
    counts: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    lines: dict[tuple[str, SiteKey], Line] = field(default_factory=dict)
    steps: int = 0
    # Reads by Keras or TensorFlow for their own purposes: no line of the program asked for them.
    framework_syncs: int = 0
    # Counted separately: the events of warm-up steps, and those of `allow` regions, by reason.
    warmup: Counter[str] = field(default_factory=Counter)
    allowed: dict[str, Counter[str]] = field(default_factory=dict)
    # The kinds whose limit was passed.
    over: set[str] = field(default_factory=set)

    @property
    def syncs(self) -> int:
        """Reads of values that wait for the device."""
        return self.counts[SYNCS]

    @property
    def copies(self) -> int:
        """Conversions of host data."""
        return self.counts[COPIES]

    @property
    def copied_bytes(self) -> int:
        """Bytes of host data converted."""
        return self.bytes[COPIES]

    @property
    def retraces(self) -> int:
        """Functions traced again."""
        return self.counts[RETRACES]

    @property
    def eager_ops(self) -> int:
        """Ops dispatched one by one."""
        return self.counts[EAGER_OPS]

    def line(self, kind: str, site: SiteKey) -> Line:
        """Return the tally of a kind at a site."""
        found = self.lines.get((kind, site))
        if found is None:
            if len(self.lines) >= _MAX_SITES:
                site = ("<other lines>", 0, "")
            found = self.lines.setdefault((kind, site), Line(kind, *site))
        return found

    def ordered(self, kind: str) -> list[Line]:
        """Return the lines of a kind: most events first, then most bytes."""
        return sorted((e for e in self.lines.values() if e.kind == kind), key=lambda e: (-e.count, -e.bytes))

    def text(self) -> str:
        """Return one screen of text: each kind over its limit with its lines, then what was counted separately."""
        parts = [self.headline(kind) + "\n" + self._lines(kind) for kind in KINDS if kind in self.over]
        if not parts:
            parts = [", ".join(amount(kind, self.counts[kind]) for kind in KINDS)]
        return "\n".join(parts + self._describe_rest())

    def headline(self, kind: str) -> str:
        """Return a headline such as `3 syncs, over the limit of 0`."""
        limit = self.limits.by_kind[kind]
        got = amount(kind, self.counts[kind])
        if self.bytes[kind]:
            got += f" ({size(self.bytes[kind])})"
        return f"{got}, over the limit of {limit.text}{' a step' if self.limits.per_step else ''}"

    def _lines(self, kind: str) -> str:
        lines = self.ordered(kind)
        shown = [line.text() for line in lines[:_MAX_LINES]]
        if len(lines) > _MAX_LINES:
            shown.append(f"  ... and {quantity(len(lines) - _MAX_LINES, 'more line')}")
        return "\n".join([*shown, f"  → {advice(kind)}"])

    def _describe_rest(self) -> list[str]:
        apart = [f"  allowed, {reason}: {_amounts(counts)}" for reason, counts in self.allowed.items()]
        if self.warmup:
            apart.append(f"  in warm-up: {_amounts(self.warmup)}")
        if self.framework_syncs:
            apart.append(f"  by TensorFlow and Keras themselves: {amount(SYNCS, self.framework_syncs)}")
        return apart


class GuardError(StokerError):
    """A limit was passed. Raised at the line that passed it."""

    report: Report | None = None
    line: Line | None = None
    kind = ""


class SyncError(GuardError):
    """A tensor was read back to the host."""

    kind = SYNCS


class CopyError(GuardError):
    """Host data was copied to the device."""

    kind = COPIES


class RetraceError(GuardError):
    """A function was traced again."""

    kind = RETRACES


class EagerOpError(GuardError):
    """Too many ops were dispatched one by one."""

    kind = EAGER_OPS


class GuardWarning(UserWarning):
    """A limit was passed, with `action="warn"`."""


_ERRORS = {error.kind: error for error in (SyncError, CopyError, RetraceError, EagerOpError)}

# Tracebacks show these classes by the name under which programs catch them.
for _public in (GuardError, GuardWarning, *_ERRORS.values()):
    _public.__module__ = "stoker"


def error_of(report: Report, line: Line) -> GuardError:
    """Return the error for the line that passed the limit."""
    error = _ERRORS[line.kind](message(report, line))
    error.report, error.line = report, line
    return error


def message(report: Report, line: Line) -> str:
    """Say what happened at this line, and what to do."""
    return "\n".join(
        [report.headline(line.kind), line.text(), f"  → {advice(line.kind)}", *report._describe_rest()]
    )


def advice(kind: str) -> str:
    """Say what to do instead."""
    return f'{_ADVICE[kind]} On purpose: `with stoker.allow("reason"):`'


def amount(kind: str, count: int) -> str:
    """Return an amount in words: `1 sync`, `3 copies`."""
    return f"{count:,} {SINGULAR[kind] if count == 1 else PLURAL[kind]}"


def _amounts(counts: Counter[str]) -> str:
    return ", ".join(amount(kind, counts[kind]) for kind in KINDS if counts[kind])
