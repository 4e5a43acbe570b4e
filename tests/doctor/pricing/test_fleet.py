"""A job of many workers, simulated."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.doctor.pricing.fleet import (
    Fleet,
    best_interval,
    exchange_s,
    fleet_of,
    kept_share,
    outlook,
    slowest_of,
)
from stoker.records import WindowSums
from tests.doctor.pricing.test_simulation import recorded

CALM = Fleet(
    step_s=0.1,
    step_times=[],
    gradient_bytes=100_000_000,
    bandwidth=10e9,
    mtbf_s=4 * 3600,
    workers=1024,
    checkpoint_s=20,
    restart_s=120,
)


@settings(deadline=None)
@given(st.lists(st.floats(0.001, 10), min_size=1, max_size=20), st.integers(1, 2000))
def test_the_slowest_of_many_is_between_the_mean_and_the_worst(times: list[float], workers: int) -> None:
    slowest = slowest_of(times, workers)
    mean = sum(times) / len(times)
    assert mean * (1 - 1e-9) <= slowest <= max(times) * (1 + 1e-9)
    assert slowest <= slowest_of(times, workers + 1) * (1 + 1e-9)


def test_the_slowest_of_many_is_what_drawing_them_gives() -> None:
    draw, times = random.Random(7), [1.0, 1.1, 1.2, 2.0, 5.0]
    drawn = sum(max(draw.choice(times) for _ in range(8)) for _ in range(20_000)) / 20_000
    assert slowest_of(times, 8) == pytest.approx(drawn, rel=0.02)


def test_an_exchange_takes_its_bytes_and_its_messages() -> None:
    assert exchange_s(1, 10**9, 1e9) == 0
    assert exchange_s(2, 10**9, 1e9) == pytest.approx(1.0, rel=0.01)
    assert exchange_s(1024, 10**9, 1e9) == pytest.approx(2.0, rel=0.1)
    # Of few bytes the messages are what counts, and a tree has fewer of them.
    assert exchange_s(1024, 1000, 1e9) == pytest.approx(20 * 50e-6, rel=0.01)


@pytest.mark.parametrize(("mtbf", "cost"), [(14_400, 20), (86_400, 60), (3600, 5)])
def test_the_best_interval_is_the_known_one(mtbf: float, cost: float) -> None:
    """Where failures are rare the best interval is known: the square root of twice cost times time between failures."""
    interval, kept = best_interval(mtbf, cost, restart_s=0)
    known = math.sqrt(2 * cost * mtbf)
    assert known / 1.5 < interval < known * 1.5
    assert kept == pytest.approx(1 - math.sqrt(2 * cost / mtbf), abs=0.02)


def test_what_is_not_saved_is_lost() -> None:
    # Saved after 10 and 20, failed at 27: 7 are lost. A failure while starting loses all of it.
    assert kept_share(9, 1, 0, [27.0]) == pytest.approx(18 / 27)
    assert kept_share(9, 1, 30, [27.0, 57.0]) == pytest.approx(18 / 84)


def test_a_larger_job_is_less_efficient_and_saves_more_often() -> None:
    jobs = [outlook(CALM, workers) for workers in (8, 64, 1024)]
    assert [job.mtbf_s for job in jobs] == [4 * 3600 * 128, 4 * 3600 * 16, 4 * 3600]
    for smaller, larger in itertools.pairwise(jobs):
        assert larger.efficiency < smaller.efficiency < 1
        assert larger.interval_s < smaller.interval_s


def test_steps_that_vary_make_all_wait() -> None:
    varying = Fleet(**{**vars(CALM), "step_times": [0.09] * 99 + [1.09]})
    assert outlook(CALM, 1024).waiting_s == 0
    # Of so many workers one is slow at nearly every step.
    assert outlook(varying, 1024).waiting_s == pytest.approx(0.1 * (1.09 / 0.1 - 1), rel=0.01)


def test_a_run_that_was_a_worker_has_its_own_exchange_taken_out() -> None:
    accounts = {"graph": 3.0, "python": 1.0}
    record = recorded([], [[0.0, 0.04]], seconds=4.0, steps=100, accounts=accounts, gradient_bytes=1000)
    phase = record.tables.stepping_phase
    assert phase is not None
    alone = fleet_of(record, phase, 1e9, 3600, 8)
    sums = WindowSums(graph_ns=300, graph_communication_ns=100)
    among = dataclasses.replace(record, tables=dataclasses.replace(record.tables, windows=[sums]))
    assert alone.step_s == pytest.approx(0.04)
    assert fleet_of(among, phase, 1e9, 3600, 8).step_s == pytest.approx(0.03)
