"""A worker's place in its job: its rank, the addresses of all workers, and the variables that carry them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

# Besides TF_CONFIG, every worker gets its rank, the number of workers, the job's id and the number of restarts so far.
RANK, SIZE, JOB, RESTART = "STOKER_RANK", "STOKER_SIZE", "STOKER_JOB", "STOKER_RESTART"


@dataclass(frozen=True)
class WorkerPlace:
    """One worker among all workers; `addresses` holds a host:port for each rank."""

    rank: int
    addresses: list[str]

    @property
    def size(self) -> int:
        """The number of workers."""
        return len(self.addresses)

    @property
    def port(self) -> int:
        """The port on which this worker listens."""
        return int(self.addresses[self.rank].rpartition(":")[2])


class TfTask(TypedDict):
    """The `task` of TF_CONFIG."""

    type: str
    index: int


class TfClusterConfig(TypedDict):
    """The contents of TF_CONFIG, as JSON."""

    cluster: dict[str, list[str]]
    task: TfTask


def build_tf_config(place: WorkerPlace) -> TfClusterConfig:
    """Return what TensorFlow reads from TF_CONFIG. All workers have the same type; rank 0 acts as the chief."""
    return {"cluster": {"worker": place.addresses}, "task": {"type": "worker", "index": place.rank}}
