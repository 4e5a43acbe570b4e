"""Every so many steps, or every so many seconds: one rule for checkpoints, evaluations and progress bars.

every = Every(steps=100)
for step in ...:
    if every.due(step):
        ...
        every.mark(step)
"""

from __future__ import annotations

from stoker import clock


class Every:
    """Is it time again? With neither steps nor seconds, never."""

    def __init__(self, *, steps: int | None = None, seconds: float | None = None) -> None:
        self.steps = steps
        self.seconds = seconds
        self.mark(0)

    def mark(self, step: int = 0) -> None:
        """It was done at this step, now."""
        self._last_step, self._last_ns = step, clock.real_ns()

    def due(self, step: int = 0) -> bool:
        """Whether enough steps, or enough time, have passed since it was last done."""
        if self.steps is not None and step - self._last_step >= self.steps:
            return True
        if self.seconds is None:
            return False
        return clock.real_ns() - self._last_ns >= self.seconds * 1e9


def steps_until(step: int, *intervals: int | None) -> int | None:
    """How many steps until the next multiple of any interval; None without intervals."""
    return min((every - step % every for every in intervals if every), default=None)
