"""A worker's sign of life: a thread of its own touches a file. It runs in the user's program: standard library only.

A process that is stopped, or in which nothing gets the interpreter any more, touches nothing.
"""

from __future__ import annotations

import _thread
import os
import time

# What the door into the program reads: the file, a colon, seconds between two beats.
VARIABLE = "STOKER_HEARTBEAT"
_BEATS, _SLOWEST_S = 5, 1.0


def interval(heartbeat_s: float) -> float:
    """Seconds between two beats, of which several fit into the time after which nobody hears any."""
    return min(_SLOWEST_S, heartbeat_s / _BEATS)


def begin(text: str) -> None:
    """Beat from now on; `text` is the variable's."""
    path, _, seconds = text.rpartition(":")
    # Below the threading module: a program that counts its threads counts only its own.
    _thread.start_new_thread(_beat, (path, float(seconds)))


def _beat(path: str, seconds: float) -> None:
    while True:
        try:
            os.utime(path)
        except OSError:
            # The agent has gone, and its files with it.
            return
        time.sleep(seconds)
