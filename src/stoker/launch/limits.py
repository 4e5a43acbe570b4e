"""How long a job waits for its workers, and how often it begins again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Seconds and counts."""

    # A worker without a sign of life for so long is lost.
    heartbeat_s: float = 60.0
    # Every machine answers, every worker starts, and once one has joined its cluster the others join, within so long.
    # Clusters need minutes: cold container images, imports from a shared disk, pods that are scheduled one by one.
    start_s: float = 600.0
    # Workers that were told to end have so long to save.
    grace_s: float = 60.0
    # Preempted workers (exit code 75) do not count.
    max_restarts: int = 3


# "Try again later" in sysexits.h: all workers saved the same step and left.
PREEMPTED = 75
