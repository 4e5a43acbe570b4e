"""The limits of a job: how long it waits for its workers, and how many times it restarts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LaunchLimits:
    """Time limits in seconds, and the number of restarts."""

    # A worker counts as lost after this long without a heartbeat.
    heartbeat_s: float = 60.0
    # How long every machine may take to answer, every worker to start, and all workers to join once one has joined.
    # Clusters need minutes: cold container images, imports from a shared disk, pods that are scheduled one by one.
    start_s: float = 600.0
    # How long workers may take to save after they were asked to stop.
    grace_s: float = 60.0
    # Preemptions (exit code 75) do not count.
    max_restarts: int = 3

    def build_options(self) -> list[str]:
        """Return the time limits that differ from the defaults, as options of `stoker launch`."""
        default = LaunchLimits()
        pairs = (
            ("--heartbeat", self.heartbeat_s, default.heartbeat_s),
            ("--start-deadline", self.start_s, default.start_s),
            ("--grace", self.grace_s, default.grace_s),
        )
        return [word for option, value, usual in pairs if value != usual for word in (option, f"{value:g}s")]


# EX_TEMPFAIL in sysexits.h, "try again later": all workers saved the same step and exited.
PREEMPTED = 75
