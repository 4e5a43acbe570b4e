"""Every so many steps, or seconds."""

from __future__ import annotations

import pytest

from stoker import clock
from stoker.periodic import Every, steps_until


def test_by_steps() -> None:
    every = Every(steps=10)
    assert [step for step in range(25) if every.due(step)] == list(range(10, 25))
    every.mark(12)
    assert not every.due(21)
    assert every.due(22)


def test_by_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr(clock, "real_ns", lambda: now[0])
    every = Every(seconds=2)
    now[0] = 1_999_999_999
    assert not every.due()
    now[0] += 1
    assert every.due()
    every.mark()
    assert not every.due()


def test_neither_is_never() -> None:
    assert not Every().due(10**9)


def test_steps_until_the_next_multiple() -> None:
    assert steps_until(0, 10) == 10
    assert steps_until(7, 10, 4) == 1
    assert steps_until(8, None, 10) == 2
    assert steps_until(8, None) is None
