"""The environment: the machine, TensorFlow's build, and the variables that steer them."""

from __future__ import annotations

from dataclasses import dataclass, field

from stoker.doctor.probes.measurements import ProbePart

# The fact that holds the share of the processors that other programs had.
OTHER_WORK = "busy with other work"


@dataclass(frozen=True)
class EnvironmentPart(ProbePart):
    """What a run depends on beside its code."""

    facts: dict[str, str | int | float] = field(default_factory=dict)
    # Processes that train together, by TF_CONFIG.
    workers: int = 1

    @property
    def other_work(self) -> float:
        """The share of the machine's processors that other programs had."""
        return float(self.facts.get(OTHER_WORK, 0.0))
