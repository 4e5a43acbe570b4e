"""`stoker.guard`: limits on syncs, copies, retraces and eager ops, as a context manager and decorator."""

from __future__ import annotations

import functools
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from stoker.doctor.attach.sites import USER
from stoker.doctor.guard import hooks, scope
from stoker.doctor.guard.events import SITES, Event
from stoker.doctor.guard.limits import COPIES, EAGER_OPS, RETRACES, SYNCS, Limits, limits
from stoker.doctor.guard.report import GuardError, GuardWarning, Report, error_of, message
from stoker.doctor.guard.steps import StepCounter

F = TypeVar("F", bound=Callable[..., Any])


class Entered(scope.Region):
    """A guard at work, for one `with` block or one call of a decorated function."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits
        self.report = Report(limits)
        self.steps = StepCounter()
        self._lock = threading.Lock()
        self._this_step: Counter[str] = Counter()
        self._this_steps_bytes: Counter[str] = Counter()
        self._refused: tuple[GuardError, weakref.ref[Any]] | None = None
        self._raised: GuardError | None = None

    def begin(self) -> None:
        """Put the patches in if this is the first guard. The region is entered after that."""
        hooks.acquire()

    def end(self, error: BaseException | None) -> None:
        """Take the patches out if this was the last guard, and raise an error that could not be raised at the line."""
        hooks.release()
        hidden = self._find_hidden_error(error)
        # An error holds the frames that it passed through, and so would keep this guard alive.
        self._refused = self._raised = None
        if isinstance(error, GuardError):
            _cut_below_user(error.__traceback__)
        elif hidden is not None:
            raise hidden.with_traceback(_cut_at_user(error.__traceback__) if error else None) from None

    def _find_hidden_error(self, error: BaseException | None) -> GuardError | None:
        """Return the guard's error if other code hid it: the program saw another error, or none.

        At the stopped line itself, C code puts its own error around ours (NumPy) or reports only "no buffer"
        (`memoryview`). A variable's `__repr__` swallows ours.
        """
        refused = self._refused[0] if self._refused is not None else None
        if error is None:
            swallowed = self._raised is not None and not _find_user_entries(self._raised.__traceback__)
            return refused or (self._raised if swallowed else None)
        ours = refused or error.__cause__
        users = _find_user_entries(error.__traceback__)
        if not isinstance(ours, GuardError) or ours.line is None or not users:
            return None
        last = _entries(error.__traceback__)[users[-1]]
        stopped = (last.tb_frame.f_code.co_filename, last.tb_lineno) == (ours.line.file, ours.line.line)
        return ours if stopped else None

    def count(self, event: Event, reason: str | None) -> bool:
        """Count an event, and return whether it passes a limit."""
        with self._lock:
            report, kind = self.report, event.kind
            if reason is not None:
                report.allowed.setdefault(reason, Counter())[kind] += 1
                return False
            if event.site is None and kind == SYNCS:
                report.framework_syncs += 1
                return False
            if self.limits.warmup and self.steps.steps <= self.limits.warmup:
                report.warmup[kind] += 1
                return False
            self._tally(event)
            limit = self.limits.by_kind.get(kind)
            if limit is None:
                return False
            counts, sizes = self._totals()
            passed = limit.is_exceeded(counts[kind], sizes[kind])
            if passed:
                report.over.add(kind)
            return passed

    def count_op(self) -> None:
        """Count an eager op if eager ops have no limit, without looking for its line."""
        if self.open:
            with self._lock:
                warm = self.limits.warmup and self.steps.steps <= self.limits.warmup
                (self.report.warmup if warm else self.report.counts)[EAGER_OPS] += 1

    def _totals(self) -> tuple[Counter[str], Counter[str]]:
        if self.limits.per_step:
            return self._this_step, self._this_steps_bytes
        return self.report.counts, self.report.bytes

    def _tally(self, event: Event) -> None:
        report, kind = self.report, event.kind
        report.counts[kind] += 1
        report.bytes[kind] += event.bytes
        self._this_step[kind] += 1
        self._this_steps_bytes[kind] += event.bytes
        if event.site is not None:
            line = report.line(kind, event.site)
            line.what = line.what or event.what()
            line.count += 1
            line.bytes += event.bytes

    def act(self, event: Event) -> None:
        """Act on a passed limit: raise, warn once per line, or leave it to the report."""
        __tracebackhide__ = True
        if event.site is None or self.limits.action == "record":
            return
        line = self.report.line(event.kind, event.site)
        if self.limits.action == "raise":
            self._raised = error_of(self.report, line)
            raise self._raised
        if not line.warned:
            line.warned = True
            file, number, _ = event.site
            warnings.warn_explicit(message(self.report, line), GuardWarning, file, number, registry={})

    def limits_ops(self) -> bool:
        """See `Region.limits_ops`."""
        return EAGER_OPS in self.limits.by_kind

    def wants_threads(self) -> bool:
        """See `Region.wants_threads`."""
        return self.limits.threads

    def begin_step(self, rank: int, source: object) -> None:
        """See `Region.begin_step`."""
        with self._lock:
            if self.open and self.steps.begin(rank, source):
                self.report.steps = self.steps.steps
                self._this_step.clear()
                self._this_steps_bytes.clear()

    def regrade_steps(self, rank: int, source: object) -> None:
        """See `Region.regrade_steps`."""
        with self._lock:
            self.steps.regrade(rank, source)
            self.report.steps = self.steps.steps

    def more_steps(self, source: object, steps: int) -> None:
        """See `Region.more_steps`."""
        with self._lock:
            if self.open:
                self.steps.more(source, steps)
                self.report.steps = self.steps.steps

    def refuse(self, error: GuardError, tensor: Any) -> None:
        """See `Region.refuse`. The error waits for a caller that can raise it."""
        if error.report is self.report:
            self._refused = (error, weakref.ref(tensor))

    def take_refusal(self, tensor: Any) -> GuardError | None:
        """See `Region.take_refusal`."""
        refused = self._refused
        if refused is None or refused[1]() is not tensor or not self.open:
            return None
        self._refused = None
        return refused[0]


class Guard(scope.Entrance[Entered]):
    """The result of `guard`. It can be used any number of times, nested, and in several threads at once."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(functools.partial(Entered, limits))

    def __enter__(self) -> Report:
        return self._enter().report


def guard(
    syncs: int | str | None = 0,
    copies: int | str | None = "1 MiB",
    retraces: int | None = 0,
    eager_ops: int | None = None,
    *,
    action: str = "raise",
    per_step: bool = False,
    warmup: int = 0,
    threads: bool = False,
) -> Guard:
    """Stop what would make an accelerator wait, at the line that does it.

        with stoker.guard(warmup=2) as report:
            for batch in data:
                step(batch)

    Args:
        syncs: the limit for reads of tensors, as a count or in bytes such as "4 KiB". None only counts.
        copies: the limit for conversions of host data, as a count or in bytes.
        retraces: how many times functions may be traced again.
        eager_ops: how many ops may be dispatched one by one.
        action: "raise" at the line, "warn" once per line, or "record" in the report only.
        per_step: apply the limits to each step, which the guard finds by itself, instead of the whole block.
        warmup: how many steps at the beginning may do anything.
        threads: also watch threads started, and pool tasks submitted, under this guard.

    Returns:
        A context manager that is also a decorator; `with ... as report` gives live counts.

    Raises:
        UsageError: a limit is invalid.
    """
    by_kind = {SYNCS: syncs, COPIES: copies, RETRACES: retraces, EAGER_OPS: eager_ops}
    return Guard(limits(by_kind, per_step, warmup, action, threads))


def bind(function: F) -> F:
    """Return `function`, made to run in another thread under the guards open here: `pool.submit(bind(work))`."""
    carried: Any = functools.wraps(function)(hooks.bind(function, scope.current()))
    bound: F = carried
    return bound


def _cut_below_user(trace: TracebackType | None) -> None:
    """End the traceback of our own error at the user's line, where a debugger should stop.

    The traceback is changed in place: Python 3.10 re-raises an error from `__exit__` with the traceback that the error
    came with, whatever traceback the error has now.
    """
    users = _find_user_entries(trace)
    if users:
        _entries(trace)[users[-1]].tb_next = None


def _cut_at_user(trace: TracebackType | None) -> TracebackType | None:
    """Return a copy of another error's traceback that ends at the user's line."""
    users = _find_user_entries(trace)
    if not users:
        return trace
    chain: TracebackType | None = None
    for entry in reversed(_entries(trace)[: users[-1] + 1]):
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chain


def _find_user_entries(trace: TracebackType | None) -> list[int]:
    """Return the indices of the user's entries in a traceback."""
    files = [entry.tb_frame.f_code.co_filename for entry in _entries(trace)]
    return [index for index, file in enumerate(files) if SITES.kind_of(file) == USER]


def _entries(trace: TracebackType | None) -> list[TracebackType]:
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    return entries
