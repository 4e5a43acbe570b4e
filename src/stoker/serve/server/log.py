"""The server's log: a thread writes lines to stderr, so that a log that fails or stalls holds up no request.

The reader of stderr may be gone, its disk may be full, or it may have stopped reading. Lines that cannot be written are
dropped and counted, and the count is logged as soon as a line can be written again.
"""

from __future__ import annotations

import logging
import os
import queue
import threading

from stoker.units import quantity

_MOST_WAITING = 10_000
_FLUSH_S = 2.0


class ServerLog(logging.Handler):
    """Writes lines to a file descriptor, each after a prefix. Calling it never fails and never waits."""

    def __init__(self, prefix: str = "stoker: ", descriptor: int = 2) -> None:
        super().__init__()
        self._prefix, self._descriptor = prefix, descriptor
        self._lines: queue.Queue[str | None] = queue.Queue(_MOST_WAITING)
        self.lost = 0  # lines that could not be written, and were not reported yet
        self._overflow = 0  # lines that did not fit into the queue
        self._counting = threading.Lock()
        self._torn = False  # whether only a part of the last line was written
        self._thread = threading.Thread(target=self._write_all, name="stoker-log", daemon=True)
        self._thread.start()

    def __call__(self, line: str) -> None:
        """Log a line."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            with self._counting:
                self._overflow += 1

    def emit(self, record: logging.LogRecord) -> None:
        self(record.getMessage())

    def close(self) -> None:
        """Write the waiting lines, unless the reader has stopped reading."""
        try:
            self._lines.put(None, timeout=_FLUSH_S)
        except queue.Full:
            return
        self._thread.join(_FLUSH_S)

    def _write_all(self) -> None:
        while (line := self._lines.get()) is not None:
            with self._counting:
                self.lost, self._overflow = self.lost + self._overflow, 0
            if self.lost and self._write(f"{quantity(self.lost, 'log line')} could not be written"):
                self.lost = 0
            if self.lost or not self._write(line):
                self.lost += 1

    def _write(self, line: str) -> bool:
        data = f"{self._prefix}{line}\n".encode("utf-8", "backslashreplace")
        left = b"\n" + data if self._torn else data
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
                self._torn = 0 < len(left) < len(data)
        except OSError:
            return False
        return True
