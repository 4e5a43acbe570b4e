"""Ray: an agent on each node of a cluster, as an actor that holds the CPUs of its workers; and workers of Ray Train.

Ray finds the nodes and carries the messages; Stoker sets TF_CONFIG. Stoker does not use Ray's own TensorflowTrainer,
which switches to the old Keras (TF_USE_LEGACY_KERAS=1).
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from stoker.errors import UsageError, first_line
from stoker.launch import ports
from stoker.launch.events import AgentGone, AgentNoise
from stoker.launch.hosts import Host, JobSize, share_out
from stoker.launch.links import AGENT, Hear, Link
from stoker.launch.messages import Command, decode_report, encode
from stoker.launch.place import WorkerPlace
from stoker.launch.plan import LaunchPlan
from stoker.launch.request import JobRequest
from stoker.launch.schedulers.base import Scheduler

_CHUNK = 64 * 1024
_WAIT_S = 300.0
_ASK_EVERY_S = 0.1


class Ray(Scheduler):
    """The nodes of a Ray cluster, or a worker that Ray Train started."""

    name = "ray"

    @classmethod
    def has_started(cls, variables: Mapping[str, str]) -> bool:
        """Return whether this is a worker of Ray Train; other tasks of Ray have no rank."""
        train = sys.modules.get("ray.train")
        if train is None or "RAY_RAYLET_PID" not in variables:
            return False
        try:
            return train.get_context().get_world_size() is not None
        except RuntimeError:
            return False

    def find_place(self) -> WorkerPlace:
        """Return the place, with rank and size from Ray Train.

        The workers exchange their addresses, again after every restart.
        """
        import ray
        from ray import train
        from ray.train.collective import barrier, broadcast_from_rank_zero

        context = train.get_context()
        rank, size = context.get_world_rank(), context.get_world_size()
        name = broadcast_from_rank_zero(f"stoker-{secrets.token_hex(8)}" if rank == 0 else None)
        book = ray.remote(AddressBook).options(name=name, get_if_exists=True, num_cpus=0).remote()
        address = f"{ray.util.get_node_ip_address()}:{ports.find_free_ports(1)[0]}"
        ray.get(book.add.remote(rank, address))
        deadline = time.monotonic() + _WAIT_S
        while len(addresses := ray.get(book.read.remote())) < size:
            if time.monotonic() > deadline:
                raise UsageError(
                    f"ray: {size - len(addresses)} of {size} workers did not arrive within {_WAIT_S:g} s"
                )
            time.sleep(_ASK_EVERY_S)
        # The actor ends with the worker that created it, so no worker may leave before all have read the addresses.
        barrier()
        return WorkerPlace(rank, [addresses[other] for other in range(size)])

    def plan(self, request: JobRequest) -> LaunchPlan:
        """Plan one agent on each node of the cluster that RAY_ADDRESS names, or of a new cluster on this machine."""
        size = request.size or JobSize(1, 1)
        cluster = RayCluster(size)
        return LaunchPlan(size, cluster.list_hosts(), cluster.connect)


class AddressBook:
    """An actor with the address of each worker of Ray Train."""

    def __init__(self) -> None:
        self._addresses: dict[int, str] = {}

    def add(self, rank: int, address: str) -> None:
        """Add a worker's address."""
        self._addresses[rank] = address

    def read(self) -> dict[int, str]:
        """Return the addresses so far, by rank."""
        return self._addresses


class RayCluster:
    """The nodes of a cluster.

    Raises:
        UsageError: Ray is not installed, or does not answer.
    """

    def __init__(self, size: JobSize) -> None:
        try:
            import ray
        except ImportError:
            raise UsageError("--scheduler ray needs Ray: pip install 'stoker[ray]'") from None
        self._size = size
        try:
            ray.init(log_to_driver=False, configure_logging=False, ignore_reinit_error=True)
        except Exception as error:  # noqa: BLE001 - Ray raises just that, and others
            raise UsageError(f"cannot reach or start Ray: {first_line(error)}") from None
        self._nodes = {node["NodeManagerAddress"]: node for node in ray.nodes() if node["Alive"]}

    def list_hosts(self) -> list[Host]:
        """Return the nodes, each with room for as many workers as it has CPUs."""
        return [Host(name, int(node["Resources"].get("CPU", 0))) for name, node in self._nodes.items()]

    def connect(self, host: Host, hear: Hear) -> Link:
        """Start an agent on a node."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        shares = share_out(self.list_hosts(), self._size) or {}
        where = NodeAffinitySchedulingStrategy(self._nodes[host.name]["NodeID"], soft=False)
        # Two calls may run at a time: one sends while the other waits for reports.
        options = {"num_cpus": shares.get(host.name, 0), "max_concurrency": 2, "scheduling_strategy": where}
        actor = ray.remote(AgentActor).options(**options).remote(os.getcwd())
        return RayLink(actor, hear)


class AgentActor:
    """An actor that runs an agent's process on its node."""

    def __init__(self, directory: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=directory
        )

    def send(self, line: bytes) -> None:
        """Pass a command on to the agent."""
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def read(self) -> bytes:
        """Wait for the agent's next bytes; empty once the agent has ended."""
        assert self._process.stdout is not None
        return os.read(self._process.stdout.fileno(), _CHUNK)


class RayLink:
    """An agent behind an actor; `actor` is Ray's handle, which has no type."""

    def __init__(self, actor: Any, hear: Hear) -> None:
        self._actor, self._hear = actor, hear
        threading.Thread(target=self._read_reports, daemon=True).start()

    def send(self, command: Command) -> None:
        """Send a command. If the agent has gone, the command is lost."""
        self._actor.send.remote(encode(command))

    def close(self) -> None:
        """End the agent, and with it its workers."""
        import ray

        ray.kill(self._actor)

    def _read_reports(self) -> None:
        import ray

        rest = b""
        try:
            while data := ray.get(self._actor.read.remote()):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._hear(decode_report(line))
        except ray.exceptions.RayError as error:
            self._hear(AgentNoise(first_line(error)))
        self._hear(AgentGone(1))
