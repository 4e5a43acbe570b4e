"""Threads that have to share a core are seen to wait."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest

from stoker.train.planning.disturbance import Disturbance

BLOCK = b"x" * (1 << 22)


def _work() -> None:
    for _ in range(20):
        hashlib.sha256(BLOCK).digest()


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system does not count waiting")
def test_more_threads_than_cores_wait() -> None:
    threads = [threading.Thread(target=_work) for _ in range(4 * (os.cpu_count() or 1))]
    waited = Disturbance()
    for thread in threads:
        thread.start()
    _work()
    share = waited.ran_share()
    for thread in threads:
        thread.join()
    assert 0 < share < 0.9
