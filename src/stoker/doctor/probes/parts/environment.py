"""The environment: the machine, TensorFlow's build, and the variables that affect them."""

from __future__ import annotations

from dataclasses import dataclass, field

from stoker.doctor.probes.measurements import ProbePart

# The fact that holds the share of the processors that other programs used.
OTHER_WORK = "busy with other work"


@dataclass(frozen=True)
class EnvironmentPart(ProbePart):
    """The facts that a run depends on, besides its code."""

    facts: dict[str, str | int | float] = field(default_factory=dict)
    # The number of processes that train together, according to TF_CONFIG.
    workers: int = 1

    @property
    def other_work(self) -> float:
        """The share of the machine's processors that other programs used."""
        return float(self.facts.get(OTHER_WORK, 0.0))
