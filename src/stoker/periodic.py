"""Every N steps, or every N seconds: one rule for checkpoints, evaluations and progress bars.

every = Every(steps=100)
for step in ...:
    if every.due(step):
        ...
        every.mark(step)
"""

from __future__ import annotations

from stoker import clock


class Every:
    """Tells when periodic work is due. With neither steps nor seconds, it never is."""

    def __init__(self, *, steps: int | None = None, seconds: float | None = None) -> None:
        self.steps = steps
        self.seconds = seconds
        self.mark(0)

    def mark(self, step: int = 0) -> None:
        """Note that the work was just done, at this step."""
        self._last_step, self._last_ns = step, clock.real_ns()

    def due(self, step: int = 0) -> bool:
        """Return whether enough steps, or enough time, have passed since the work was last done."""
        if self.steps is not None and step - self._last_step >= self.steps:
            return True
        if self.seconds is None:
            return False
        return clock.real_ns() - self._last_ns >= self.seconds * 1e9


def steps_until(step: int, *intervals: int | None) -> int | None:
    """Return how many steps there are until the next multiple of any interval; None without intervals."""
    return min((every - step % every for every in intervals if every), default=None)
