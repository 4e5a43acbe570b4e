"""Keep track of which workers have started and joined their cluster, and which ones the others are waiting for.

TensorFlow holds Python's lock while it waits for the rest of the cluster, so a waiting worker sends no heartbeat. Until
all have joined, the start deadline decides instead of the heartbeat, and the missing worker gets the blame.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping

from stoker.launch.ports import is_reachable

# When to first say who is missing. Each further line waits twice as long.
_FIRST_LINE_S = 30.0
_PROBE_S = 1.0
_HINT = "raise --start-deadline if it is just slow to start"


class Arrivals:
    """The workers of one round.

    Args:
        ranks: the workers that this job starts.
        peers: the addresses of workers that the scheduler starts elsewhere, by rank.
        deadline_s: how long a worker may take to start, and to join once another one has joined.
        describe: returns the name of a worker of this round.
    """

    def __init__(
        self,
        ranks: Collection[int],
        peers: Mapping[int, str],
        deadline_s: float,
        describe: Callable[[int], str],
    ) -> None:
        self._ranks = set(ranks)
        self._deadline_s = deadline_s
        self._describe = describe
        self._peers = dict(peers)
        self._silent_peers = dict(peers)
        self._started: set[int] = set()
        self._joined: set[int] = set()
        self._began_at = time.monotonic()
        self._first_joined_at: float | None = None
        self._complete_at: float | None = None
        self._next_line_s = _FIRST_LINE_S
        self._closed = threading.Event()

    def restart_clock(self) -> None:
        """Count the deadline from now: the workers are being started."""
        self._began_at = time.monotonic()

    def note_start(self, rank: int) -> None:
        """Note that a worker has sent its first heartbeat."""
        self._started.add(rank)

    def note_join(self, rank: int) -> None:
        """Note that a worker listens on its port."""
        self._joined.add(rank)
        if self._first_joined_at is None:
            self._first_joined_at = time.monotonic()
            if self._silent_peers:
                threading.Thread(target=self._probe_peers, name="stoker-peers", daemon=True).start()
        self._check_complete()

    def close(self) -> None:
        """Stop waiting."""
        self._closed.set()

    def may_be_silent(self, seconds: float, heartbeat_s: float, now: float) -> bool:
        """Return whether a worker silent for this long may still be starting, or waiting for others to join."""
        if self._complete_at is not None:
            return now - self._complete_at <= heartbeat_s
        return seconds <= max(heartbeat_s, self._deadline_s)

    def find_overdue(self, now: float, ended: Collection[int]) -> str | None:
        """Describe the workers that did not start or join in time; None if there are none."""
        here = self._ranks - set(ended)
        idle = sorted(here - self._started)
        limit = f"{self._deadline_s:g} s"
        if idle and now - self._began_at > self._deadline_s:
            return f"{self._list(idle)} did not start within {limit} ({_HINT})"
        missing = self._find_missing(here)
        if not missing or self._first_joined_at is None or now - self._first_joined_at <= self._deadline_s:
            return None
        waiting = self._list(sorted(self._joined))
        return f"{self._list(missing)} did not join; {waiting} waited {limit} ({_HINT})"

    def describe_wait(self, now: float, ended: Collection[int]) -> str | None:
        """Describe, from time to time, which workers the others are waiting for."""
        if self._first_joined_at is None or now - self._first_joined_at < self._next_line_s:
            return None
        missing = self._find_missing(self._ranks - set(ended))
        if not missing:
            return None
        waited_s, self._next_line_s = self._next_line_s, 2 * self._next_line_s
        return (
            f"waiting for {self._list(missing)} to join: {waited_s:g} s so far, "
            f"{self._deadline_s:g} s at most (--start-deadline)"
        )

    def _check_complete(self) -> None:
        if self._complete_at is None and self._joined >= self._ranks and not self._silent_peers:
            self._complete_at = time.monotonic()

    def _find_missing(self, here: set[int]) -> list[int]:
        return sorted({*(here - self._joined), *self._silent_peers})

    def _list(self, ranks: list[int]) -> str:
        if len(ranks) == 1:
            rank = ranks[0]
            return f"worker {rank} at {self._peers[rank]}" if rank in self._peers else self._describe(rank)
        return f"workers {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"

    def _probe_peers(self) -> None:
        """Check whether the peers listen: workers that the scheduler starts elsewhere send no reports here."""
        while self._silent_peers and not self._closed.wait(_PROBE_S):
            found = [rank for rank, address in self._silent_peers.items() if is_reachable(address)]
            self._silent_peers = {
                rank: address for rank, address in self._silent_peers.items() if rank not in found
            }
        self._check_complete()
