"""The running books of one program: where the main thread's time goes, and what each site did.

Every second of the main thread is on exactly one account. A probe opens a span with `enter(account)` and closes
it with `leave()`; time belongs to the innermost open span. Sums are kept, and single spans only while a window is
open (spans.py), so memory does not grow with the length of the run. Other threads have no account, but what they
do is tallied by site all the same.

    recorder = Recorder(start_ns=clock.now_ns(), sites=Sites("train.py"))
    recorder.enter(SYNC)
    ...
    recorder.leave()
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stoker import clock
from stoker.doctor.attach.sites import SiteKey, Sites
from stoker.doctor.probes.measurements import Books
from stoker.doctor.probes.spans import Window

if TYPE_CHECKING:
    from stoker.doctor.software_gpu import Meter

# Accounts as list indices, because the probes charge them millions of times. Two are raw: the time inside compiled
# functions and the time inside eager ops, which the profiler's windows later divide into compute, input and dispatch.
STARTUP, TRACE, INPUT, TRANSFER, SYNC, CHECKPOINT, PYTHON, DISPATCH, GRAPH, EAGER, TEARDOWN = range(11)
ACCOUNT_NAMES = (
    "startup",
    "trace",
    "input",
    "transfer",
    "sync",
    "checkpoint",
    "python",
    "dispatch",
    "graph",
    "eager",
    "teardown",
)
# The time in a pause (pauses.py), before it is shared out among the accounts.
PAUSED = len(ACCOUNT_NAMES)
# An event that takes this long is measured even in a pause.
HEAVY_NS = 20_000_000

# A program that endlessly makes new sites (generated code) must not make Stoker grow endlessly.
MAX_SITES = 2000


@dataclass(kw_only=True)
class Placed:
    """The steps in which something happened: how many different ones, and which one was last."""

    between: int = 0
    last_step: int = -1


@dataclass
class Tally(Placed):
    """The counts and times of a probe at one site."""

    count: int = 0
    ns: int = 0
    wait_ns: int = 0
    lost_ns: int = 0
    # The time of waiting for a processor that other programs had; 0 if the probe does not report it.
    queued_ns: int = 0
    bytes: int = 0
    # Copies of the same array as the first one.
    same: int = 0
    # When the first event and the last one ended; 0 if the probe does not report that.
    first_end_ns: int = 0
    last_end_ns: int = 0
    # Shape, dtype, how the value was read and the like, of the first event only.
    detail: dict[str, Any] = field(default_factory=dict)


class Recorder:
    """The books: one recorder per process, to which probes hold a reference."""

    def __init__(self, start_ns: int, sites: Sites) -> None:
        self.start_ns = start_ns
        self.sites = sites
        # By account, with unshared time last; `spread` is what has been shared out in the current pause.
        self.totals = [0] * (PAUSED + 1)
        self.spread = [0] * (PAUSED + 1)
        self.since = start_ns
        self.top = STARTUP
        self.main_thread = threading.main_thread().ident
        # The number of steps that have ended, from any source but reads.
        self.steps = 0
        # Start of the first device work after the last sync. Between the two the device is idle.
        self.first_dispatch_ns = 0
        self.last_sync_end_ns = 0
        # Measures what one call did to a software GPU; None without one.
        self.meter: Meter | None = None
        # Returns the nanoseconds of work still queued on the device; None if the device does not report that.
        self.queued: Callable[[], int] | None = None
        # The window of spans, opened now and then for a few steps.
        self.window: Window | None = None
        self.tallies: dict[str, dict[SiteKey, Tally]] = {}
        self.notes: list[str] = []
        self.versions: dict[str, str] = {}
        # For pauses: what ends one; whether one is on, and whether the next event must end it; and which events are
        # heavy. The lock is for another thread, which keeps the books of a pause.
        self.on_wake: Callable[[], None] = lambda: None
        self.in_pause = self.is_due = False
        self.heavy_ns = HEAVY_NS
        # The estimated time, and the standard error of the estimate as a share.
        self.estimated_ns = 0
        self.estimate_error = 0.0
        self.lock = threading.RLock()
        self._stack: list[int] = []
        self._lock = threading.Lock()

    def on_main_thread(self) -> bool:
        """Return whether the caller's time is on the books."""
        return threading.get_ident() == self.main_thread

    def enter(self, account: int) -> int:
        """Open a span on the main thread and return the time."""
        now = clock.now_ns()
        top = self.top
        self.totals[top] += now - self.since
        if self.window is not None:
            self.window.add(self.since, now, top)
        self.since = now
        self._stack.append(top)
        self.top = account
        return now

    def leave(self) -> int:
        """Close the innermost span and return the time."""
        now = clock.now_ns()
        self.totals[self.top] += now - self.since
        if self.window is not None:
            self.window.add(self.since, now, self.top)
        self.since = now
        # A KeyboardInterrupt can fall between any two lines. A stack that is then too short must not break the program.
        self.top = self._stack.pop() if self._stack else PYTHON
        return now

    def rebase(self, account: int) -> None:
        """Change the account of time outside all spans, because start-up is over."""
        now = clock.now_ns()
        if self._stack:
            self._stack[0] = account
            return
        self.totals[self.top] += now - self.since
        self.since = now
        self.top = account

    @property
    def depth(self) -> int:
        """The number of open spans."""
        return len(self._stack)

    def pause(self) -> int:
        """Begin a pause in the innermost span and return the time."""
        now = clock.now_ns()
        self.totals[self.top] += now - self.since
        self.since, self.top = now, PAUSED
        self.in_pause, self.is_due = True, False
        return now

    def resume(self, account: int) -> None:
        """End the pause: put what was shared out on the accounts, and charge the time from now on to this account."""
        if self.top == PAUSED:
            now = clock.now_ns()
            self.totals[PAUSED] += now - self.since
            self.since, self.top = now, account
        self._stack = [account if open_one == PAUSED else open_one for open_one in self._stack]
        self.spread[account] += self.totals[PAUSED] - sum(self.spread)
        for number, ns in enumerate(self.spread):
            self.totals[number] += ns
        self.totals[PAUSED] = 0
        self.spread = [0] * (PAUSED + 1)
        self.first_dispatch_ns = 0
        self.in_pause = self.is_due = False

    def has_ended_pause(self) -> bool:
        """Return whether an event on the main thread has just ended a pause."""
        if self.top != PAUSED or not self.is_due or not self.on_main_thread():
            return False
        self.on_wake()
        return True

    def charge(self, account: int, started: int, ended: int) -> None:
        """Put an event of a pause on its account, because it cost too much to be estimated."""
        self.totals[PAUSED] += started - self.since
        self.totals[account] += ended - started
        self.since = ended

    def read_unaccounted(self) -> tuple[int, int]:
        """Return the pause's nanoseconds not shared out yet, and the time. Safe to call from another thread."""
        while True:
            since = self.since
            ns, now = self.totals[PAUSED] - sum(self.spread), clock.now_ns()
            if self.top == PAUSED:
                ns += now - since
            if self.since == since:
                return max(0, ns), now

    def tally(self, probe: str, key: SiteKey) -> Tally:
        """Return the tally of a probe at a site, which is made at the first event."""
        tallies = self.tallies.get(probe)
        if tallies is None:
            tallies = self.tallies.setdefault(probe, {})
        found = tallies.get(key)
        if found is None:
            if len(tallies) >= MAX_SITES:
                key = ("<other sites>", 0, "")
            found = tallies.setdefault(key, Tally())
        return found

    def tallies_of(self, probe: str) -> dict[SiteKey, Tally]:
        """Return the tallies of a probe by site, up to now. Safe to call from another thread."""
        return dict(self.tallies.get(probe, {}))

    def date(self, tally: Tally, ended: int) -> None:
        """Note when an event of a tally ended, and after which step."""
        if not tally.count:
            tally.first_end_ns = ended
        tally.last_end_ns = ended
        self.place(tally)

    def place(self, found: Placed) -> None:
        """Note that something happened after the last step that has ended."""
        if found.last_step != self.steps:
            found.last_step = self.steps
            found.between += 1

    def note(self, text: str) -> None:
        """Note something that the reader of the report must know. The same text is noted only once."""
        with self._lock:
            if text not in self.notes:
                self.notes.append(text)

    def measure(self, ended: bool) -> Books:
        """Return the books up to now or, if the program has `ended`, up to the moment when its device is done.

        A program that ends with work queued on the device is not done before the device, because the host waits for it.
        """
        totals, now = self.read_balances()
        if ended and self.queued is not None:
            queued = self.queued()
            totals[SYNC] += queued
            now += queued
        return Books(
            start_ns=self.start_ns,
            wall_ns=now - self.start_ns,
            totals=dict(zip(ACCOUNT_NAMES, totals, strict=True)),
            versions=dict(self.versions),
            notes=list(self.notes),
            columns=dict(self.sites.columns),
            estimated_ns=self.estimated_ns,
            estimate_error=self.estimate_error,
        )

    def read_balances(self) -> tuple[list[int], int]:
        """Return nanoseconds by account up to now, and the time. Safe to call from another thread."""
        with self.lock:
            while True:
                since = self.since
                totals, top, now = list(self.totals), self.top, clock.now_ns()
                # The main thread may have moved on during the copy, which `since` shows.
                if self.since == since:
                    totals[top] += now - since
                    break
            paused = totals.pop()
            totals = [measured + shared for measured, shared in zip(totals, self.spread, strict=False)]
            # A moment ago, everything was shared out.
            totals[PYTHON] += paused - sum(self.spread)
            return totals, now
