"""A pod of an Indexed Job, as `stoker launch --engine kubernetes` writes it."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.errors import UsageError
from stoker.launch.environments.place import Environment, Place

# Kubernetes sets the first; our manifest the others: how many pods, and the name of each with {rank} in it.
INDEX, WORKERS, ADDRESS = "JOB_COMPLETION_INDEX", "STOKER_POD_COUNT", "STOKER_POD_ADDRESS"


class Kubernetes(Environment):
    """Pods that find each other by name."""

    name = "kubernetes"

    @classmethod
    def here(cls, variables: Mapping[str, str]) -> bool:
        """In a pod that has a number."""
        return INDEX in variables and ADDRESS in variables

    def place(self) -> Place:
        """The pod's number is the rank."""
        rank, size, pattern = self.number(INDEX), self.number(WORKERS), self.value(ADDRESS)
        if rank >= size or "{rank}" not in pattern:
            raise UsageError(f"kubernetes: pod {rank} of {size} at {pattern!r} makes no sense")
        return Place(rank, [pattern.replace("{rank}", str(pod)) for pod in range(size)])
