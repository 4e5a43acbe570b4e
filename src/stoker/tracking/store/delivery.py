"""Batches on their way: into the store, or, while it cannot be written, into the spool; each of them once.

A batch is committed together with its number, so one whose commit was not confirmed can be delivered again. One thread
at a time works with a `Delivery`; its memory of what is not delivered yet is `unsent`, oldest first.
"""

from __future__ import annotations

import secrets
import sys
from contextlib import suppress
from pathlib import Path

from stoker import clock
from stoker.errors import StokerError
from stoker.tracking.store import opening, sealing, spool
from stoker.tracking.store.address import Address
from stoker.tracking.store.applying import Batch, apply
from stoker.tracking.store.audit import keep_head
from stoker.tracking.store.connections import Connection, Refused
from stoker.tracking.store.entries import Entry
from stoker.units import printable

# What a batch raises whose entries have the right form and the wrong content.
_MISFITS = (KeyError, TypeError, ValueError, AttributeError)
# After a failure: how long until the next attempt, doubled each time.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0


class Delivery:
    """What one writer has to deliver."""

    def __init__(self, address: Address, writer: str, open_runs: dict[str, list[Entry]]) -> None:
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
        self._said = False

    def successor(self) -> Delivery:
        """Another, for a thread that cannot wait for the one that works with this: with all that is unsent here."""
        late = Delivery(self._address, self._writer, self._open_runs)
        late.unsent, late._number = list(self.unsent), self._number
        late.spool = spool.Spool(self._address, f"{self._writer}.late")
        # Whether the store takes anything is not asked again: it hangs.
        late._retry_ns = sys.maxsize
        return late

    def add(self, entries: list[Entry]) -> None:
        """Make a batch of entries."""
        self._number += 1
        self.unsent.append(Batch(self._writer, self._number, entries))

    def attempt(self, now: bool = False) -> None:
        """Deliver everything that waits, oldest first; what the store does not take goes to the spool.

        After a failure nothing is tried for a while, unless it must be `now`.
        """
        if (self.unsent or self.spool) and (now or clock.real_ns() >= self._retry_ns):
            try:
                self._send()
            except Exception as error:  # noqa: BLE001 - whatever it is, the program goes on and the spool keeps it
                self._failed(error)
            else:
                self._pause_s = 0.0
                if self._said:
                    self._said = False
                    say(f"the store is back, and everything is in it: {self._address}")
        # What the spool cannot take either stays in memory.
        with suppress(OSError):
            while self.unsent:
                self.spool.append(self.unsent[0])
                self.unsent.pop(0)

    def close(self) -> None:
        """At the end of the process: say what could not be delivered, and let go."""
        if self.unsent:
            lost = sum(len(batch.entries) for batch in self.unsent)
            say(f"{lost} entries are lost: neither {self._address} nor a spool file could be written")
        elif self.spool:
            say(f"what the store could not take is in {self.spool}: the next run writes it")
        self.spool.let_go()
        self._disconnect()

    def forget(self) -> Connection | None:
        """In a forked child: all of it is the parent's. Its connection, which must be kept, since closing it hurts."""
        self.spool.forget()
        return self._connection

    def _send(self) -> None:
        connection = self._connected()
        for file in self.spool.files:
            deliver_file(connection, self._address, file, self._streams)
        self.spool.remove()
        while self.unsent:
            deliver(connection, self._address, self.unsent[0], self._streams)
            self.unsent.pop(0)

    def _connected(self) -> Connection:
        if self._connection is not None and not self._connection.is_current():
            self._disconnect()
        if self._connection is None:
            self._connection = opening.connect(self._address)
            self._announce(self._connection)
        if not self._adopted:
            adopt(self._connection, self._address)
            self._adopted = True
        return self._connection

    def _announce(self, connection: Connection) -> None:
        """A store that was deleted and is made anew has to learn of the runs that go on."""
        waiting = [*self.spool.batches(), *self.unsent]
        to_come = {entry[1] for batch in waiting for entry in batch.entries if entry[0] == "run"}
        for run, begun in list(self._open_runs.items()):
            if run not in to_come and not connection.execute("SELECT 1 FROM runs WHERE id = ?", (run,)):
                again = Batch(f"{self._writer}-{secrets.token_hex(6)}", 1, begun)
                deliver(connection, self._address, again)

    def _failed(self, error: Exception) -> None:
        self._disconnect()
        self._streams.clear()
        self._pause_s = min(max(2 * self._pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
        self._retry_ns = clock.real_ns() + int(self._pause_s * 1e9)
        if not self._said:
            self._said = True
            # Of one of ours the text is a sentence; of anything else the name is needed to make sense of it.
            what = str(error) if isinstance(error, StokerError) else f"{type(error).__name__}: {error}"
            say(
                f"{what}; the program goes on, and what it logs is kept in a spool file until the store is back"
            )

    def _disconnect(self) -> None:
        if self._connection is not None:
            # It is broken, or leads to a file that is gone: what closing it says does not matter.
            with suppress(Exception):
                self._connection.close()
            self._connection = None


def deliver(
    connection: Connection, address: Address, batch: Batch, streams: sealing.Streams | None = None
) -> None:
    """Write a batch, and keep the audit's end beside the store."""
    head = apply(connection, batch, streams)
    if head is not None:
        # The chain itself is in the store; that its end is not kept beside it makes a cut harder to notice.
        with suppress(OSError):
            keep_head(connection, address, head.seq, head.hash)


def adopt(connection: Connection, address: Address) -> None:
    """Write what processes that are no more left in their spools.

    Raises:
        Trouble: the store cannot be written; what is not written stays where it is.
    """
    for orphan in spool.orphans(address):
        try:
            deliver_file(connection, address, orphan)
        except OSError as error:
            orphan.close()
            say(f"{orphan.path} has damaged lines that cannot be moved out of the way ({error.strerror})")
            continue
        except BaseException:
            orphan.close()
            raise
        orphan.remove()


def deliver_file(
    connection: Connection, address: Address, file: spool.SpoolFile, streams: sealing.Streams | None = None
) -> None:
    """Write the batches of a spool file; a line that is damaged, or that the store refuses, is moved out of the way.

    Raises:
        Trouble: the store cannot be written.
        OSError: a damaged line cannot be moved.
    """
    damaged: list[Path] = []
    for line in file.lines():
        try:
            deliver(connection, address, spool.parse(line), streams)
        except (spool.DamagedLine, Refused, *_MISFITS):
            damaged.append(file.quarantine(line))
    if damaged:
        count = f"{len(damaged)} lines" if len(damaged) > 1 else "1 line"
        say(
            f"{count} of the spool could not be read and went to {damaged[0]}; everything else is in the store"
        )


def say(line: str) -> None:
    """One line to the user, unless nobody listens any more."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"stoker: {printable(line)}\n")
