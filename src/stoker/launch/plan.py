"""A plan of where a job runs, made by its scheduler."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.launch.hosts import LOCAL, Host, JobSize
from stoker.launch.links import Connect, start_local_agent
from stoker.launch.place import WorkerPlace


@dataclass(frozen=True)
class LaunchPlan:
    """The machines of a job, and how to reach an agent on each.

    With `place`, the scheduler starts and restarts all workers, and this process runs only the one at that place.
    `discover` is a command that prints the machines available now.
    """

    size: JobSize
    hosts: list[Host]
    connect: Connect
    place: WorkerPlace | None = None
    discover: str | None = None


def plan_one_worker(place: WorkerPlace) -> LaunchPlan:
    """Plan to run, on this machine, one worker of a job whose other workers the scheduler starts."""
    return LaunchPlan(JobSize(1, 1), [Host(LOCAL)], start_local_agent, place)
