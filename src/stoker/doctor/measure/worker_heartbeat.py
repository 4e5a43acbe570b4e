"""A worker's heartbeat: a thread in the user's program that touches a file. It uses only the standard library.

A process that is stopped, or whose threads no longer get the interpreter, touches nothing.
"""

from __future__ import annotations

import _thread
import os
import time

# The variable that `bootstrap` reads: the file, a colon, seconds between two beats.
VARIABLE = "STOKER_HEARTBEAT"
_BEATS, _SLOWEST_S = 5, 1.0


def interval(heartbeat_s: float) -> float:
    """Return the seconds between two beats. Several beats fit into the time after which a worker counts as dead."""
    return min(_SLOWEST_S, heartbeat_s / _BEATS)


def begin(text: str) -> None:
    """Start beating; `text` is the value of the variable."""
    path, _, seconds = text.rpartition(":")
    # Started below the threading module, so that a program that counts its threads counts only its own.
    _thread.start_new_thread(_beat, (path, float(seconds)))


def _beat(path: str, seconds: float) -> None:
    while True:
        try:
            os.utime(path)
        except OSError:
            # The agent is gone, and its files with it.
            return
        time.sleep(seconds)
