"""Deliver batches, each exactly once: to the store, or to the spool while the store cannot be written.

A batch is committed together with its number, so a batch whose commit was not confirmed can be delivered again. One
thread at a time works with an `EventDelivery`; `unsent` holds what it has not delivered yet, oldest first.
"""

from __future__ import annotations

import secrets
import sys
from contextlib import suppress
from pathlib import Path

from stoker import clock
from stoker.errors import StokerError
from stoker.logs import LOGGER
from stoker.tracking.store import opening, sealing, spool
from stoker.tracking.store.address import Address
from stoker.tracking.store.applying import apply
from stoker.tracking.store.audit import keep_head
from stoker.tracking.store.connections import Connection, StoreRefusedError
from stoker.tracking.store.events import Batch, DamagedBatchError, Event, RunStarted, decode_batch

# The errors of a batch whose events have the right form but the wrong content.
_MISFITS = (KeyError, TypeError, ValueError, AttributeError)
# The pause after a failure; it doubles each time.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0


class EventDelivery:
    """The batches of one writer."""

    def __init__(self, address: Address, writer: str, open_runs: dict[str, list[Event]]) -> None:
        self.unsent: list[Batch] = []
        self.spool = spool.Spool(address, writer)
        self._address = address
        self._writer = writer
        self._open_runs = open_runs
        self._number = 0
        self._streams = sealing.Streams()
        self._connection: Connection | None = None
        self._adopted = False
        self._pause_s, self._retry_ns = 0.0, 0
        self._has_warned = False

    def make_successor(self) -> EventDelivery:
        """Return another delivery of everything unsent, for a thread that cannot wait until this one is free."""
        late = EventDelivery(self._address, self._writer, self._open_runs)
        late.unsent, late._number = list(self.unsent), self._number
        late.spool = spool.Spool(self._address, f"{self._writer}.late")
        # The store hangs, so do not try it again.
        late._retry_ns = sys.maxsize
        return late

    def add(self, events: list[Event]) -> None:
        """Make a batch of events."""
        self._number += 1
        self.unsent.append(Batch(self._writer, self._number, events))

    def attempt(self, now: bool = False) -> None:
        """Deliver everything that waits, oldest first. What the store does not take goes to the spool.

        After a failure, the store is left alone for a while, unless it must be `now`.
        """
        if (self.unsent or self.spool) and (now or clock.real_ns() >= self._retry_ns):
            try:
                self._send()
            except Exception as error:  # noqa: BLE001 - whatever it is, the program continues and the spool keeps it
                self._handle_failure(error)
            else:
                self._pause_s = 0.0
                if self._has_warned:
                    self._has_warned = False
                    LOGGER.warning("the store is back, and everything is in it: %s", self._address)
        # If the spool cannot take the batch either, it stays in memory.
        with suppress(OSError):
            while self.unsent:
                self.spool.append(self.unsent[0])
                self.unsent.pop(0)

    def close(self) -> None:
        """At the end of the process, report what could not be delivered, and release everything."""
        if self.unsent:
            lost = sum(len(batch.events) for batch in self.unsent)
            LOGGER.error(
                "%d events are lost: neither %s nor a spool file could be written", lost, self._address
            )
        elif self.spool:
            LOGGER.warning("what the store could not take is in %s; the next run writes it", self.spool)
        self.spool.release()
        self._disconnect()

    def forget(self) -> Connection | None:
        """In a forked child, where everything here is the parent's, return the connection, which must not be closed."""
        self.spool.forget()
        return self._connection

    def _send(self) -> None:
        connection = self._connect()
        for file in self.spool.files:
            deliver_file(connection, self._address, file, self._streams)
        self.spool.remove()
        while self.unsent:
            deliver(connection, self._address, self.unsent[0], self._streams)
            self.unsent.pop(0)

    def _connect(self) -> Connection:
        if self._connection is not None and not self._connection.is_current():
            self._disconnect()
        if self._connection is None:
            self._connection = opening.connect(self._address)
            self._restore_runs(self._connection)
        if not self._adopted:
            adopt_spools(self._connection, self._address)
            self._adopted = True
        return self._connection

    def _restore_runs(self, connection: Connection) -> None:
        """Write open runs again if the store was deleted and made again."""
        waiting = [*self.spool.batches(), *self.unsent]
        coming = {event.run for batch in waiting for event in batch.events if isinstance(event, RunStarted)}
        for run, started in list(self._open_runs.items()):
            if run not in coming and not connection.execute("SELECT 1 FROM runs WHERE id = ?", (run,)):
                again = Batch(f"{self._writer}-{secrets.token_hex(6)}", 1, started)
                deliver(connection, self._address, again)

    def _handle_failure(self, error: Exception) -> None:
        self._disconnect()
        self._streams.clear()
        self._pause_s = min(max(2 * self._pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
        self._retry_ns = clock.real_ns() + int(self._pause_s * 1e9)
        if not self._has_warned:
            self._has_warned = True
            # The text of our own errors is a sentence; other errors make sense only with their class.
            what = str(error) if isinstance(error, StokerError) else f"{type(error).__name__}: {error}"
            LOGGER.warning(
                "%s; the program continues, and a spool file keeps what it logs until the store is back", what
            )

    def _disconnect(self) -> None:
        if self._connection is not None:
            # The connection is broken, or its file is gone, so errors on closing do not matter.
            with suppress(Exception):
                self._connection.close()
            self._connection = None


def deliver(
    connection: Connection, address: Address, batch: Batch, streams: sealing.Streams | None = None
) -> None:
    """Write a batch, and keep the audit's head beside the store."""
    head = apply(connection, batch, streams)
    if head is not None:
        # The chain itself is in the store. Without the head beside it, a cut at the end is just harder to notice.
        with suppress(OSError):
            keep_head(connection, address, head.seq, head.hash)


def adopt_spools(connection: Connection, address: Address) -> None:
    """Write the spool files that processes left behind when they ended.

    Raises:
        StoreError: the store cannot be written; everything that was not written stays in the spool.
    """
    for orphan in spool.open_orphans(address):
        try:
            deliver_file(connection, address, orphan)
        except OSError as error:
            orphan.close()
            LOGGER.warning(
                "%s has damaged lines that cannot be moved out of the way (%s)", orphan.path, error.strerror
            )
            continue
        except BaseException:
            orphan.close()
            raise
        orphan.remove()


def deliver_file(
    connection: Connection, address: Address, file: spool.SpoolFile, streams: sealing.Streams | None = None
) -> None:
    """Write the batches of a spool file. Move lines that are damaged, or that the store rejects, out of the way.

    Raises:
        StoreError: the store cannot be written.
        OSError: a damaged line cannot be moved.
    """
    damaged: list[Path] = []
    for line in file.read_lines():
        try:
            deliver(connection, address, decode_batch(line), streams)
        except (DamagedBatchError, StoreRefusedError, *_MISFITS):
            damaged.append(file.quarantine(line))
    if damaged:
        count = f"{len(damaged)} lines" if len(damaged) > 1 else "1 line"
        LOGGER.warning(
            "%s of the spool could not be read and went to %s; everything else is in the store",
            count,
            damaged[0],
        )
