"""The real clock counts the program's own time and leaves emulation and teardown out."""

from __future__ import annotations

import pytest

from tests.doctor.software_gpu.conftest import Run


@pytest.mark.slow
def test_the_programs_own_time_counts_as_it_is(run: Run) -> None:
    fact = run("clock")["sleep"]
    assert 0.199 <= fact["virtual"] <= fact["real"]


def test_emulated_kernels_take_modelled_time(run: Run) -> None:
    # 3 products of 17 GFLOP: 13 ms on this profile at half of its peak, whatever the CPU takes; none is
    # waited for.
    fact = run("clock")["emulation"]
    assert fact["virtual"] < 0.5 * fact["real"]


def test_the_teardown_of_an_iterator_is_left_out(run: Run) -> None:
    fact = run("clock")["teardown"]
    assert fact["real"] - fact["virtual"] > 0.29


def test_no_thread_sees_the_clock_go_back(run: Run) -> None:
    assert run("clock")["backwards"] == 0


def test_a_prefetch_to_the_device_never_looks_slower_than_none(run: Run) -> None:
    (ahead, copying_ahead), (in_loop, copying_in_loop) = (
        run("clock")["pipelines"][k] for k in ("ahead", "in_the_loop")
    )
    # The host's dispatch is real and varies with the machine's load; that it no longer copies does not.
    assert copying_ahead < 0.5 * copying_in_loop
    assert ahead <= 1.3 * in_loop
