"""Memory over time: bounded, and no peak gets lost."""

from __future__ import annotations

from stoker.doctor.probes.memory import MAX_POINTS, MemoryHistory, resident_bytes


def test_a_long_run_keeps_few_points_over_all_of_it_and_its_peak() -> None:
    history = MemoryHistory()
    for tick in range(50_000):
        history.add(tick * 0.2, 900 if tick == 31_417 else 100, None)
    assert len(history.points) <= MAX_POINTS
    assert history.points[0][0] == 0
    assert history.points[-1][0] > 9_000
    assert max(host or 0 for _, host, _ in history.points) == 900


def test_points_too_near_each_other_are_one() -> None:
    history = MemoryHistory()
    history.add(0.0, 5, None)
    history.add(0.1, 7, 3)
    history.add(0.19, 6, 2)
    assert history.points == [(0.0, 7, 3)]


def test_the_process_has_memory() -> None:
    held = bytearray(50_000_000)
    before = resident_bytes()
    assert before is not None
    assert before > len(held)
