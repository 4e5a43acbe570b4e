"""Copies, syncs and launches are counted exactly, and the deterministic clock repeats its times."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest

from tests.doctor.software_gpu.conftest import Run

# copies to the device, copies from it (each: how many, bytes), syncs, launches
EXPECTED: dict[str, tuple[list[int], list[int], int, int]] = {
    "constant": ([1, 65536], [0, 0], 0, 0),
    "two_constants": ([2, 131072], [0, 0], 0, 0),
    # TensorFlow keeps 32-bit whole numbers in host memory.
    "int32_constant": ([0, 0], [0, 0], 0, 0),
    "add": ([0, 0], [0, 0], 0, 1),
    "numpy": ([0, 0], [1, 65536], 1, 0),
    # TensorFlow keeps the host copy it made: a second read of the same tensor is free.
    "numpy_again": ([0, 0], [0, 0], 0, 0),
    "float": ([0, 0], [1, 4], 1, 0),
    "np_mean": ([0, 0], [1, 65536], 1, 0),
    "np_asarray": ([0, 0], [1, 65536], 1, 0),
    "if": ([1, 4], [1, 1], 1, 2),
    "format": ([0, 0], [1, 4], 1, 1),
    # 100 steps of 7 kernels; all losses in one read at the end, or one read per step.
    "loop_kept": ([0, 0], [1, 400], 1, 701),
    "loop_read": ([0, 0], [100, 400], 100, 700),
    "feed": ([10, 655360], [0, 0], 0, 70),
    # The same 7 kernels, compiled: one launch per call.
    "compiled": ([0, 0], [0, 0], 0, 10),
    # Eight batches of 64 KiB; both pipelines also read the dataset's batch size (8 bytes) back from the
    # device.
    "host_pipeline": ([8, 524288], [1, 8], 1, 17),
    "prefetch_to_device": ([9, 524296], [1, 8], 0, 17),
}
TIMES = ("wall_s", "busy_s", "host_wait_s", "host_copy_s")


def without_times(fact: dict[str, Any]) -> dict[str, Any]:
    # The peak of memory depends by a few hundred bytes on which of two independent ops came first.
    return {key: value for key, value in fact.items() if key not in (*TIMES, "memory_peak")}


def counted(facts: dict[str, Any]) -> dict[str, Any]:
    """All that a second run must repeat."""
    found = {case: without_times(fact) for case, fact in facts.items()}
    # A pipeline's thread gives back what it has fetched ahead when it comes to it.
    for case in ("prefetch_to_device", "host_pipeline"):
        del found[case]["memory_in_use"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("case", EXPECTED)
def test_exact_counts(run: Run, case: str) -> None:
    fact = run("counts")[case]
    assert (fact["h2d"], fact["d2h"], fact["syncs"], fact["launches"]) == EXPECTED[case]


def test_keras_fit_copies_and_syncs_a_fixed_number_of_times_per_epoch(run: Run) -> None:
    facts = run("counts")
    one, two = facts["fit_epoch"], facts["fit_two_epochs"]
    # Four steps of 16 rows with 8 + 1 float32 columns must go in; every step syncs at least once, even
    # silently.
    assert one["h2d"][1] >= 64 * 9 * 4
    assert one["syncs"] >= 4
    for key in ("syncs", "launches"):
        assert two[key] == 2 * one[key]
    for key in ("h2d", "d2h"):
        assert two[key] == [2 * value for value in one[key]]


@pytest.mark.skipif(not version("keras").startswith("3.15."), reason="the counts are those of Keras 3.15")
def test_keras_fit_exactly(run: Run) -> None:
    # Four steps: the batch's 512 + 64 bytes each, and the scalars Keras makes; losses and counters come back.
    fact = run("counts")["fit_epoch"]
    assert (fact["h2d"], fact["d2h"], fact["syncs"], fact["launches"]) == ([32, 2404], [13, 56], 9, 173)


@pytest.mark.slow
def test_a_second_run_prints_the_same_counts(run: Run) -> None:
    first, second = run("counts"), run("counts", attempt=2)
    assert counted(first) == counted(second)


@pytest.mark.slow
def test_both_clocks_count_the_same(run: Run) -> None:
    first, second = run("counts"), run("counts", "deterministic")
    assert counted(first) == counted(second)


@pytest.mark.slow
def test_the_deterministic_clock_prints_the_same_times(run: Run) -> None:
    first, second = run("counts", "deterministic"), run("counts", "deterministic", attempt=2)
    for case in first:
        assert {t: first[case][t] for t in TIMES} == {t: second[case][t] for t in TIMES}, case


def test_a_read_waits_and_copies_as_the_profile_says(run: Run) -> None:
    # The profile a100: 10 us to come back from a wait, 10 us for a copy and 16 GB/s (half of PCIe 4.0).
    fact = run("counts", "deterministic")["numpy"]
    assert fact["host_wait_s"] == pytest.approx(10e-6, rel=1e-3)
    assert fact["host_copy_s"] == pytest.approx(10e-6 + 65536 / 16e9, rel=1e-3)


def test_reading_every_step_costs_time_and_prefetching_never_does(run: Run) -> None:
    facts = run("counts", "deterministic")
    assert facts["loop_read"]["wall_s"] > facts["loop_kept"]["wall_s"]
    assert facts["prefetch_to_device"]["wall_s"] <= facts["host_pipeline"]["wall_s"]
    assert facts["loop_read"]["busy_s"] == pytest.approx(facts["loop_kept"]["busy_s"], rel=0.01)
