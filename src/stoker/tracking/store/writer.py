"""The writer's thread. Callers append events to a queue at almost no cost; the thread commits them in batches.

    writer = writer_for(address)
    writer.put(event)       # from any thread
    writer.flush()          # until everything is committed, or waits in the spool

Every half second, the queue becomes a batch. While the store is locked, full, read-only, gone or slow, batches go to
the spool in order, and one warning says so. The waiting batches are written when the store is back, by this process or
by the next one that opens the store.
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
from stoker.logs import LOGGER
from stoker.tracking.store import audit
from stoker.tracking.store.address import Address
from stoker.tracking.store.connections import Connection
from stoker.tracking.store.delivery import EventDelivery
from stoker.tracking.store.events import Event, RunChanged, RunsSeen, redact

INTERVAL_S = 0.5
# The most events in one transaction.
_MOST_EVENTS = 20_000
# How often a run reports that it is alive.
_SEEN_EVERY_S = 10.0
# How long the store may take at the end of a process before the remaining events go to the spool.
CLOSING_S = 10.0

_writers: dict[Address, StoreWriter] = {}
_creating = threading.Lock()
# In a forked child: the parent's connections. Closing them here would break the parent's, so they are kept open.
_inherited: list[Connection | None] = []


def writer_for(address: Address) -> StoreWriter:
    """Return this process's writer for a store."""
    with _creating:
        if address not in _writers:
            _writers[address] = StoreWriter(address)
        return _writers[address]


class StoreWriter:
    """The writer of a store; see the module's docstring. `started` says whether its thread runs; code that appends to
    `queue` without `put` must check it.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._reset()

    def _reset(self) -> None:
        """Start from nothing: at first, and in a forked child, where the queue belongs to the parent."""
        self.queue: deque[Event] = deque()
        self.started = False
        # The runs of this process that have not ended, with the events that started them.
        self.open_runs: dict[str, list[Event]] = {}
        self._later: deque[Callable[[], list[Event]]] = deque()
        self.delivery = EventDelivery(self.address, f"{os.getpid()}-{secrets.token_hex(6)}", self.open_runs)
        self._seen_ns = clock.real_ns()
        self._wake = threading.Event()
        self._closing = False
        # Held while batches are made and delivered.
        self._delivering = threading.Lock()
        self._rounds = threading.Condition()
        self._round = 0

    def put(self, *events: Event) -> None:
        """Queue events in this order, with secrets removed."""
        self.put_redacted(*(redact(event) for event in events))

    def put_redacted(self, *events: Event) -> None:
        """Queue events that hold no secrets, otherwise like `put`."""
        self.queue.extend(events)
        if not self.started:
            self.start()

    def put_later(self, make: Callable[[], list[Event]]) -> None:
        """Have the writer's thread make events that take a while, and queue them."""
        self._later.append(make)
        if not self.started:
            self.start()
        self._wake.set()

    def start(self) -> None:
        """Start the thread, unless it is already running."""
        with _creating:
            if self.started or self._closing:
                return
            self.started = True
            # A thread inherits the signal mask; signals are for the program's own threads.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                threading.Thread(target=self._work, name="stoker-store", daemon=True).start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until everything put so far is committed or in the spool. Return False on timeout."""
        if not self.started or self._closing:
            return True
        with self._rounds:
            # The current round may have emptied the queue already, and events that are made later come one round later.
            goal = self._round + 3
            self._wake.set()
            while self._round < goal:
                if not self._rounds.wait(timeout_s):
                    return False
                self._wake.set()
        return True

    def is_waiting(self) -> bool:
        """Return whether anything is not in the store yet."""
        return bool(self.queue or self._later or self.delivery.unsent or self.delivery.spool)

    def close(self, timeout_s: float = CLOSING_S) -> None:
        """At the end of the process, write everything, or leave it in the spool and warn."""
        if self._closing:
            return
        self._closing = True
        now = time.time()
        open_runs = list(self.open_runs)
        self._later.append(lambda: [event for run in open_runs for event in _interrupt(run, now)])
        self._wake.set()
        delivery, in_time = self.delivery, self._delivering.acquire(timeout=timeout_s)
        if not in_time:
            # The thread hangs in the store and holds the lock, so take over everything that is not confirmed. Batches
            # are numbered, so nothing is written twice if the thread succeeds after all.
            delivery = delivery.make_successor()
        self._make_later()
        self._collect(delivery)
        delivery.attempt(now=in_time)
        delivery.close()
        if in_time:
            self._delivering.release()

    def reset_after_fork(self) -> None:
        """Leave the parent's work to the parent."""
        _inherited.append(self.delivery.forget())
        self._reset()

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
        """Make the events that take a while, after everything else has been queued."""
        while self._later:
            make = self._later.popleft()
            try:
                self.queue.extend(redact(event) for event in make())
                # Do not wait half a second for the next round.
                self._wake.set()
            except Exception as error:  # noqa: BLE001 - nothing in the user's data must end this thread
                LOGGER.warning("could not store an event of a run (%s: %s)", type(error).__name__, error)

    def _collect(self, delivery: EventDelivery) -> None:
        """Turn the queue into batches."""
        now = clock.real_ns()
        if self.open_runs and now - self._seen_ns > _SEEN_EVERY_S * 1e9:
            self._seen_ns = now
            self.queue.append(RunsSeen(list(self.open_runs), time.time()))
        while self.queue:
            taken: list[Event] = []
            with suppress(IndexError):
                while len(taken) < _MOST_EVENTS:
                    taken.append(self.queue.popleft())
            delivery.add(taken)


def _interrupt(run: str, at: float) -> list[Event]:
    state = {"state": "interrupted"}
    return [RunChanged(run, {**state, "ended": at}), audit.note(audit.ENDED, run, state)]


def _close_all() -> None:
    for writer in list(_writers.values()):
        if writer.started:
            writer.close()


def _forget_all() -> None:
    global _creating
    _creating = threading.Lock()
    for writer in _writers.values():
        writer.reset_after_fork()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_all)
