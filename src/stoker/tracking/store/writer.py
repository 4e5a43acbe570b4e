"""The thread that writes: entries are appended to a queue, which costs the caller nothing, and committed in batches.

    writer = of(address)
    writer.put(entry)       # any thread
    writer.flush()          # until all of it is committed, or waits in the spool

Every half second the queue becomes a batch. While the store is locked, full, read-only, gone or slow, batches go to the
spool, in order; that is said once. What waits is written when the store is back, by this process or by the next that
opens the store.
"""

from __future__ import annotations

import atexit
import os
import secrets
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from stoker import clock
from stoker.tracking.store import audit
from stoker.tracking.store.address import Address
from stoker.tracking.store.connections import Connection
from stoker.tracking.store.delivery import Delivery, say
from stoker.tracking.store.entries import Entry, redact

INTERVAL_S = 0.5
# Of one transaction.
_MOST_ENTRIES = 20_000
# How often a run says that it is alive.
_SEEN_EVERY_S = 10.0
# At the end of a process: how long the store may take before what is left goes to the spool.
CLOSING_S = 10.0

_writers: dict[Address, Writer] = {}
_creating = threading.Lock()
# Connections of the parent, in a forked child: never closed, for that would hurt the parent.
_inherited: list[Connection | None] = []


def of(address: Address) -> Writer:
    """This process's writer for a store."""
    with _creating:
        if address not in _writers:
            _writers[address] = Writer(address)
        return _writers[address]


class Writer:
    """See the module. `started` is whether its thread runs: whoever appends to `queue` without `put` looks at it."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._begin()

    def _begin(self) -> None:
        """As if nothing had been: at first, and in a forked child, where the parent's work is none of ours."""
        self.queue: deque[Entry] = deque()
        self.started = False
        # The runs of this process that have not ended, with the entries that began them.
        self.open_runs: dict[str, list[Entry]] = {}
        self._later: deque[Callable[[], list[Entry]]] = deque()
        self.delivery = Delivery(self.address, f"{os.getpid()}-{secrets.token_hex(6)}", self.open_runs)
        self._seen_ns = clock.real_ns()
        self._wake = threading.Event()
        self._closing = False
        # Held while batches are made and delivered.
        self._delivering = threading.Lock()
        self._rounds = threading.Condition()
        self._round = 0

    def put(self, *entries: Entry) -> None:
        """Queue entries, in this order, without the secrets in them."""
        self.put_redacted(*(redact(entry) for entry in entries))

    def put_redacted(self, *entries: Entry) -> None:
        """As `put`, for entries that have no secrets."""
        self.queue.extend(entries)
        if not self.started:
            self.start()

    def put_later(self, made: Callable[[], list[Entry]]) -> None:
        """Queue what is yet to be found out, on the writer's thread: entries that take a while to make."""
        self._later.append(made)
        if not self.started:
            self.start()
        self._wake.set()

    def start(self) -> None:
        """Start the thread, if it does not run."""
        with _creating:
            if self.started or self._closing:
                return
            self.started = True
            # A thread inherits the mask: signals are for the program's own threads, whatever they wait for.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                threading.Thread(target=self._work, name="stoker-store", daemon=True).start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until what was put before is committed or in the spool; False if that took longer."""
        if not self.started or self._closing:
            return True
        with self._rounds:
            # The round that runs now may have looked into the queue before; what is made late comes a round later.
            goal = self._round + 3
            self._wake.set()
            while self._round < goal:
                if not self._rounds.wait(timeout_s):
                    return False
                self._wake.set()
        return True

    def waiting(self) -> bool:
        """Whether something is not in the store yet."""
        return bool(self.queue or self._later or self.delivery.unsent or self.delivery.spool)

    def close(self, timeout_s: float = CLOSING_S) -> None:
        """At the end of the process: write everything, or leave it in the spool and say so."""
        if self._closing:
            return
        self._closing = True
        now = time.time()
        open_runs = list(self.open_runs)
        self._later.append(lambda: [entry for run in open_runs for entry in _interrupted(run, now)])
        self._wake.set()
        delivery, in_time = self.delivery, self._delivering.acquire(timeout=timeout_s)
        if not in_time:
            # A store that hangs has the thread, and the thread the lock: take over with what it has not confirmed.
            # That is numbered, so nothing is written twice if it succeeds after all.
            delivery = delivery.successor()
        self._make_later()
        self._collect(delivery)
        delivery.attempt(now=in_time)
        delivery.close()
        if in_time:
            self._delivering.release()

    def forked(self) -> None:
        """In a forked child."""
        _inherited.append(self.delivery.forget())
        self._begin()

    def _work(self) -> None:
        while not self._closing:
            self._wake.wait(INTERVAL_S)
            self._wake.clear()
            with self._delivering:
                if self._closing:
                    return
                self._collect(self.delivery)
                self.delivery.attempt()
            self._make_later()
            with self._rounds:
                self._round += 1
                self._rounds.notify_all()

    def _make_later(self) -> None:
        """What takes a while to find out, after everything else is on its way."""
        while self._later:
            made = self._later.popleft()
            try:
                self.queue.extend(redact(entry) for entry in made())
                # What was made late is not to wait for the next round as well.
                self._wake.set()
            except Exception as error:  # noqa: BLE001 - of the user's data: nothing there must end this thread
                say(f"something about a run is not kept ({type(error).__name__}: {error})")

    def _collect(self, delivery: Delivery) -> None:
        """The queue, as batches."""
        now = clock.real_ns()
        if self.open_runs and now - self._seen_ns > _SEEN_EVERY_S * 1e9:
            self._seen_ns = now
            self.queue.append(["seen", list(self.open_runs), time.time()])
        while self.queue:
            taken: list[Entry] = []
            with suppress(IndexError):
                while len(taken) < _MOST_ENTRIES:
                    taken.append(self.queue.popleft())
            delivery.add(taken)


def _interrupted(run: str, at: float) -> list[Entry]:
    state = {"state": "interrupted"}
    return [["change", run, {**state, "ended": at}], audit.entry(audit.ENDED, run, state)]


def _close_all() -> None:
    for writer in list(_writers.values()):
        if writer.started:
            writer.close()


def _forget_all() -> None:
    global _creating
    _creating = threading.Lock()
    for writer in _writers.values():
        writer.forked()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_all)
