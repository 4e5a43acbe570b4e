"""How many steps a call runs: enough that the host's share vanishes, few enough that the bar moves.

However the steps are cut into calls, they compute the same bits: this may follow the clock.
"""

from __future__ import annotations

# A call this long hides a millisecond of host work around it (under 1 %), and the bar moves twice a second and more.
CALL_SECONDS = 0.3
_FIRST = 16
_GROWTH = 16


class CallLength:
    """Grows or shrinks the calls towards `CALL_SECONDS`, unless their length is fixed."""

    def __init__(self, fixed: int | None = None, step_seconds: float | None = None) -> None:
        self.fixed = fixed
        self.steps = fixed or _FIRST
        self.step_seconds = step_seconds
        if fixed is None and step_seconds:
            self.steps = max(1, int(CALL_SECONDS / step_seconds))

    def ask(self, room: int | None) -> int:
        """How many steps to run now, of those there is room for."""
        return self.steps if room is None else min(self.steps, room)

    def took(self, steps: int, seconds: float) -> None:
        """A call of so many steps took so long. The first one compiled: it says nothing."""
        if steps == 0:
            return
        first, self.step_seconds = self.step_seconds is None, seconds / steps
        if self.fixed is not None or first:
            return
        wanted = int(CALL_SECONDS * steps / max(seconds, 1e-9))
        self.steps = max(1, min(wanted, self.steps * _GROWTH))
