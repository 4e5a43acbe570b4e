"""Where steps begin: which of all the calls and tapes under a guard mark the start of a step.

A source is a Keras loop, a tf.function or the line of a tape. Training takes precedence over inference. Of several
sources of the best class, the one with the most beginnings marks the steps; of equals, the one seen first.
"""

from __future__ import annotations

TRAINING, TAPES, INFERENCE, CALLS = range(4)


class StepCounter:
    """Counts the steps of one guard."""

    def __init__(self) -> None:
        self._begun: dict[object, int] = {}
        self._rank: dict[object, int] = {}
        self._marks: object = None
        self.steps = 0

    def begin(self, rank: int, source: object, steps: int = 1) -> bool:
        """Note that a call or tape begins, and return whether that is a new step."""
        self._rank[source] = rank
        self._begun[source] = self._begun.get(source, 0) + steps
        if source != self._marks and (self._marks is None or self._better(source, self._marks)):
            self._marks = source
        if source != self._marks:
            return False
        self.steps = self._begun[source]
        return True

    def regrade(self, rank: int, source: object) -> None:
        """Move a source to another class, which is known once its function is traced."""
        if source in self._rank and self._rank[source] != rank:
            self._rank[source] = rank
            if source != self._marks and self._better(source, self._marks):
                self._marks = source
                self.steps = self._begun[source]

    def more(self, source: object, steps: int) -> None:
        """Add steps: the one that began last was several in one call."""
        self._begun[source] = self._begun.get(source, 0) + steps
        if source == self._marks:
            self.steps = self._begun[source]

    def _better(self, a: object, b: object) -> bool:
        return (self._rank[a], -self._begun[a]) < (self._rank[b], -self._begun[b])
