"""Threads that have to share a core are seen to wait."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest

from stoker.train.planning.disturbance import Disturbance

BLOCK = b"x" * (1 << 22)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system does not count waiting")
def test_more_threads_than_cores_wait() -> None:
    # What a thread ran and waited is known while it lives: all work until they were asked.
    seen, rounds = threading.Event(), 10
    worked = threading.Barrier(4 * (os.cpu_count() or 1) + 1)

    def work() -> None:
        for _ in range(rounds):
            hashlib.sha256(BLOCK).digest()
        worked.wait()
        seen.wait()

    threads = [threading.Thread(target=work) for _ in range(worked.parties - 1)]
    waited = Disturbance()
    for thread in threads:
        thread.start()
    worked.wait()
    share = waited.ran_share()
    seen.set()
    for thread in threads:
        thread.join()
    assert 0 < share < 0.9
