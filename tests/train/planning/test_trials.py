"""Trials: what they speak for, on a machine that does other things too, and how much others disturb them."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest

from stoker.processors import ProcessorUse
from stoker.train.planning.trials import choose_by_times, measure_share_that_ran

STEPS = 100_000
COMPILE_S = 2.0
BLOCK = b"x" * (1 << 22)


@pytest.mark.parametrize(
    ("none", "loop", "chosen"),
    [
        pytest.param([2e-4, 2e-4, 2e-4], [1e-4, 1e-4, 1e-4], "loop", id="clearly faster"),
        pytest.param([2e-4, 2e-4, 9e-4], [1e-4, 8e-4, 1e-4], "loop", id="one disturbed trial each"),
        pytest.param([1e-4, 9e-4, 8e-4], [1.6e-4, 1.6e-4, 1.6e-4], "none", id="plain was disturbed twice"),
        pytest.param([9e-4, 9e-4, 8e-4], [7e-4, 9.5e-4, 9.5e-4], "none", id="plain had one lucky rival"),
        pytest.param([1.05e-4] * 3, [1e-4] * 3, "none", id="a gain within the noise"),
        pytest.param([6e-3] * 3, [1e-2] * 3, "none", id="slower"),
    ],
)
def test_the_best_and_the_median_must_agree(none: list[float], loop: list[float], chosen: str) -> None:
    assert choose_by_times(none, loop, STEPS, COMPILE_S)[0] == chosen


def test_what_is_saved_must_repay_compiling() -> None:
    assert choose_by_times([2e-4] * 3, [1e-4] * 3, 10_000, COMPILE_S) == (
        "none",
        "XLA is 2.0x as fast here, which saves less than compiling takes",
    )


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
    before = ProcessorUse.up_to_now()
    for thread in threads:
        thread.start()
    worked.wait()
    share = measure_share_that_ran(before)
    seen.set()
    for thread in threads:
        thread.join()
    assert 0 < share < 0.9
