"""A worker of Ray Train, in the loop that a `DataParallelTrainer` runs.

Ray knows ranks and not addresses: the workers meet at an actor and leave theirs. Ray's own TensorflowTrainer would set
TF_CONFIG as well, but switches to the old Keras (TF_USE_LEGACY_KERAS=1).
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Mapping

from stoker.errors import UsageError
from stoker.launch import ports
from stoker.launch.environments.place import Environment, Place

_WAIT_S = 300.0
_ASK_EVERY_S = 0.1


class Meeting:
    """An actor: who has come, and where each is to be found."""

    def __init__(self) -> None:
        self._addresses: dict[int, str] = {}

    def come(self, rank: int, address: str) -> None:
        """A worker is here."""
        self._addresses[rank] = address

    def there(self) -> dict[int, str]:
        """All that have come."""
        return self._addresses


class Ray(Environment):
    """Rank and size as Ray Train says, addresses as the workers found them free."""

    name = "ray"

    @classmethod
    def here(cls, variables: Mapping[str, str]) -> bool:
        """In a loop of Ray Train; another task of Ray's has no rank."""
        train = sys.modules.get("ray.train")
        if train is None or "RAY_RAYLET_PID" not in variables:
            return False
        try:
            return train.get_context().get_world_size() is not None
        except RuntimeError:
            return False

    def place(self) -> Place:
        """Meet the others: where, rank 0 says, and anew after every restart."""
        import ray
        from ray import train
        from ray.train.collective import barrier, broadcast_from_rank_zero

        context = train.get_context()
        rank, size = context.get_world_rank(), context.get_world_size()
        name = broadcast_from_rank_zero(f"stoker-{secrets.token_hex(8)}" if rank == 0 else None)
        meeting = ray.remote(Meeting).options(name=name, get_if_exists=True, num_cpus=0).remote()
        address = f"{ray.util.get_node_ip_address()}:{ports.free(1)[0]}"
        ray.get(meeting.come.remote(rank, address))
        until = time.monotonic() + _WAIT_S
        while len(there := ray.get(meeting.there.remote())) < size:
            if time.monotonic() > until:
                raise UsageError(
                    f"ray: {size - len(there)} of {size} workers did not come within {_WAIT_S:g} s"
                )
            time.sleep(_ASK_EVERY_S)
        # The actor ends with the worker that made it: nobody leaves before all have heard.
        barrier()
        return Place(rank, [there[other] for other in range(size)])
