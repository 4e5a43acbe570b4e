"""A trial: two ways to do the same part of a step; and which recorded events belong to a finding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from stoker.doctor.attach.sites import SiteKey, shown_path
from stoker.doctor.experiments.marking import NO_OPS, OwnOps
from stoker.doctor.experiments.timing import Way
from stoker.records import Finding


@dataclass(frozen=True)
class RepairTrial:
    """Two ways to do the same part of a step, checked to compute the same."""

    # None if only the run itself shows how long the step took.
    was: Way | None
    repaired: Way
    # The steps, or calls, in one run of each way.
    steps: int = 1
    # The part's share of the step's eager ops.
    covers: float = 0.0
    # The recorded ops that the repair replaces; none if the run's sums show that better.
    replaces: OwnOps = NO_OPS

    @property
    def ways(self) -> list[Way]:
        """The ways to time, the repaired one last."""
        return [self.repaired] if self.was is None else [self.was, self.repaired]


def is_at(stack: Sequence[SiteKey], finding: Finding) -> bool:
    """Return whether the finding's line is on a stack."""
    place = (finding.file, finding.line, finding.function)
    return any((shown_path(file), line, function) == place for file, line, function in stack)


def is_of_line(stack: Sequence[SiteKey], finding: Finding) -> bool:
    """Return whether the innermost line of a stack is the finding's.

    A comprehension is part of the line that it is on.
    """
    inside = list(
        itertools.takewhile(lambda frame: frame[2].startswith("<") and frame[2] != "<module>", stack)
    )
    return is_at(stack[: len(inside) + 1], finding)


def is_in_function(stack: Sequence[SiteKey], finding: Finding) -> bool:
    """Return whether the finding's function is on a stack."""
    place = (finding.file, finding.function)
    return any((shown_path(file), function) == place for file, _, function in stack)


def is_in_loop_of(stack: Sequence[SiteKey], finding: Finding) -> bool:
    """Return whether a stack is at the finding's line, or at another line of the code that holds the finding's loop."""
    if is_at(stack, finding):
        return True
    return bool(stack) and (shown_path(stack[0][0]), stack[0][2]) == (finding.file, finding.function)
